#include "kernels/ranks/tcp_link.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <thread>
#include <utility>

#include "core/base/error.h"

namespace fp8lab::cuda {
namespace {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;
constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // of a message: more is no message of this program

// The end of a connection closes with it.
class Socket {
  public:
    explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
    ~Socket() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    Socket& operator=(Socket&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    int get() const { return descriptor_; }
    bool open() const { return descriptor_ >= 0; }

  private:
    int descriptor_;
};

enum class Kind : std::uint32_t { hello = 0x38504631, data, failure };
struct Header {
    Kind kind = Kind::data;
    std::int32_t rank = 0;
    std::uint64_t bytes = 0;
};

// Why a connection gives nothing: the peer closed it, or was too late.
struct Gone {};
struct Late {};

bool ready(const Socket& socket, short events, Deadline until) {
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
        pollfd one{socket.get(), events, 0};
        const int found = ::poll(&one, 1, static_cast<int>(std::clamp<long long>(left, 0, 100)));
        if (found > 0) return true;
        if (left <= 0) return false;
    }
}

void receive(const Socket& socket, void* to, std::size_t bytes, Deadline until) {
    auto* at = static_cast<char*>(to);
    while (bytes > 0) {
        if (!ready(socket, POLLIN, until)) throw Late();
        const ssize_t got = ::recv(socket.get(), at, bytes, 0);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got <= 0) throw Gone();
        at += got;
        bytes -= static_cast<std::size_t>(got);
    }
}

void send_bytes(const Socket& socket, const void* from, std::size_t bytes, Deadline until) {
    const auto* at = static_cast<const char*>(from);
    while (bytes > 0) {
        if (!ready(socket, POLLOUT, until)) throw Late();
        const ssize_t sent = ::send(socket.get(), at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (sent <= 0) throw Gone();
        at += sent;
        bytes -= static_cast<std::size_t>(sent);
    }
}

void send(const Socket& socket, Kind kind, int rank, const std::string& bytes, Deadline until) {
    const Header header{kind, rank, bytes.size()};
    send_bytes(socket, &header, sizeof header, until);
    send_bytes(socket, bytes.data(), bytes.size(), until);
}

struct Message {
    Header header;
    std::string bytes;
};
Message receive_message(const Socket& socket, Deadline until) {
    Message message;
    receive(socket, &message.header, sizeof message.header, until);
    const Header& h = message.header;
    if (h.kind < Kind::hello || h.kind > Kind::failure || h.bytes > kMostBytes)
        throw Gone();  // not this program
    message.bytes.resize(h.bytes);
    receive(socket, message.bytes.data(), message.bytes.size(), until);
    return message;
}

// The first words that differ: "--seed 2" instead of "--seed 1".
std::string difference(const std::string& of_rank, const std::string& of_zero, int rank) {
    std::istringstream a(of_rank), b(of_zero);
    std::string x, y, before;
    for (;;) {
        const bool more_a = static_cast<bool>(a >> x), more_b = static_cast<bool>(b >> y);
        if (!more_a) x.clear();
        if (!more_b) y.clear();
        if (x != y || (!more_a && !more_b)) break;
        before = x;
    }
    const std::string option =
        before.empty() || x.starts_with("--") || y.starts_with("--") ? "" : before + " ";
    const auto said = [&](const std::string& word) {
        return word.empty() ? "nothing" : "'" + option + word + "'";
    };
    return fmt::format("rank {} was started with {}, rank 0 with {}", rank, said(x), said(y));
}

class TcpLink final : public HostLink {
  public:
    TcpLink(const ProcessRank& own, int ranks, const std::string& run, std::chrono::milliseconds timeout)
        : rank_(own.rank), peers_(static_cast<std::size_t>(ranks)), timeout_(timeout) {
        const Deadline until = Clock::now() + timeout;
        place_ = fmt::format("{}:{}", own.address, own.port);
        if (rank_ == 0)
            accept_all(own, run, until);
        else
            join(own, run, until);
    }

    // A connection that is closed while something has not been read loses what its other end has not read: the reason why this
    // rank has failed.
    ~TcpLink() override {
        for (const Socket& peer : peers_)
            if (peer.open()) ::shutdown(peer.get(), SHUT_WR);
        const Deadline until = Clock::now() + kQuick;
        for (const Socket& peer : peers_) {
            std::array<char, 4096> unread{};
            while (peer.open() && ready(peer, POLLIN, until) &&
                   ::recv(peer.get(), unread.data(), unread.size(), 0) > 0)
                continue;
        }
    }
    TcpLink(const TcpLink&) = delete;
    TcpLink& operator=(const TcpLink&) = delete;

    std::vector<std::string> all_gather(std::string bytes, const std::string& what,
                                        Patience patience) override {
        const std::chrono::milliseconds most = patience.value_or(timeout_);
        return rank_ == 0 ? gather(std::move(bytes), what, most) : exchange(bytes, what, most);
    }

    // What has come from others: a message for the next all_gather() stays where it is.
    void check() override {
        for (std::size_t r = 0; r < peers_.size(); ++r) {
            if (!peers_[r].open()) continue;
            Header header;
            const ssize_t seen = ::recv(peers_[r].get(), &header, sizeof header, MSG_PEEK | MSG_DONTWAIT);
            if (seen == 0 || (seen < 0 && errno != EAGAIN && errno != EINTR)) lost(static_cast<int>(r));
            if (seen == sizeof header && header.kind == Kind::failure)
                failed(receive_message(peers_[r], Clock::now() + kQuick).bytes);
        }
    }

    void fail(const std::string& reason) override {
        for (const Socket& peer : peers_)
            if (peer.open()) try {
                    send(peer, Kind::failure, rank_, reason, Clock::now() + kQuick);
                } catch (const Gone&) {
                } catch (const Late&) {
                }
    }

  private:
    static constexpr std::chrono::milliseconds kQuick{500};

    [[noreturn]] void failed(const std::string& reason) {
        if (rank_ == 0) fail(reason);  // the others hear it from rank 0
        throw Error(ErrorKind::failed, "ranks", reason);
    }
    [[noreturn]] void lost(int rank) { failed(fmt::format("rank {} has ended", rank)); }
    [[noreturn]] void late(int rank, const std::string& what, std::chrono::milliseconds most) {
        failed(fmt::format("rank {} did not reach {} within {} s", rank, what,
                           std::chrono::duration<double>(most).count()));
    }

    template <class Call>
    auto with(int rank, const std::string& what, std::chrono::milliseconds most, const Call& call) {
        try {
            return call();
        } catch (const Gone&) {
            lost(rank);
        } catch (const Late&) {
            late(rank, what, most);
        }
    }
    // A failure of another rank may come instead of data.
    std::string data_of(Message message) {
        if (message.header.kind == Kind::failure) failed(message.bytes);
        return std::move(message.bytes);
    }

    std::vector<std::string> gather(std::string own, const std::string& what,
                                    std::chrono::milliseconds most) {
        const Deadline until = Clock::now() + most;
        std::vector<std::string> all(peers_.size());
        all[0] = std::move(own);
        const std::string at_what = what + '\0';
        std::string packed;
        const auto pack = [&](const std::string& bytes) {
            const std::uint64_t size = bytes.size();
            packed.append(reinterpret_cast<const char*>(&size), sizeof size).append(bytes);
        };
        for (std::size_t r = 0; r < peers_.size(); ++r) {
            const int rank = static_cast<int>(r);
            if (r > 0) {
                all[r] = with(rank, what, most, [&] { return data_of(receive_message(peers_[r], until)); });
                // All ranks make the same calls: results of different ones must never be mixed.
                if (!all[r].starts_with(at_what))
                    failed(fmt::format("rank {} is at {}, rank 0 at {}", rank,
                                       all[r].substr(0, all[r].find('\0')), what));
                all[r].erase(0, at_what.size());
            }
            pack(all[r]);
        }
        for (std::size_t r = 1; r < peers_.size(); ++r)
            with(static_cast<int>(r), what, most,
                 [&] { send(peers_[r], Kind::data, 0, packed, until + kQuick); });
        return all;
    }
    // Rank 0 waits for the others: it says who is missing, a little later than `most`.
    std::vector<std::string> exchange(const std::string& own, const std::string& what,
                                      std::chrono::milliseconds most) {
        constexpr std::chrono::seconds kForTheAnswer(2);
        const Deadline until = Clock::now() + most + kForTheAnswer;
        const std::string packed = with(0, what, most, [&] {
            send(peers_[0], Kind::data, rank_, what + '\0' + own, until);
            return data_of(receive_message(peers_[0], until));
        });
        std::vector<std::string> all;
        for (std::size_t at = 0; at + sizeof(std::uint64_t) <= packed.size();) {
            std::uint64_t size = 0;
            std::memcpy(&size, packed.data() + at, sizeof size);
            at += sizeof size;
            if (size > packed.size() - at) break;
            all.push_back(packed.substr(at, size));
            at += size;
        }
        if (all.size() != peers_.size()) failed("rank 0 has sent something that is no message");
        return all;
    }

    void accept_all(const ProcessRank& own, const std::string& run, Deadline until) {
        const Socket listener = listen_at(own);
        for (std::size_t left = peers_.size() - 1; left > 0;) {
            if (!ready(listener, POLLIN, until)) missing();
            Socket one(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
            if (!one.open()) continue;
            without_delay(one);
            Message hello;
            try {
                hello = receive_message(one, std::min(until, Clock::now() + std::chrono::seconds(5)));
            } catch (const Gone&) {
                continue;  // no rank: a port scanner, or a process that was ended
            } catch (const Late&) {
                continue;
            }
            const int rank = hello.header.rank;
            std::string why;
            if (hello.header.kind != Kind::hello) continue;
            if (rank < 1 || rank >= static_cast<int>(peers_.size()))
                why = fmt::format("rank {} is not in 1..{}", rank, peers_.size() - 1);
            else if (peers_[static_cast<std::size_t>(rank)].open())
                why = fmt::format("rank {} is there twice", rank);
            else if (hello.bytes != run)
                why = difference(hello.bytes, run, rank);
            if (!why.empty()) {
                peers_.push_back(std::move(one));  // it hears the reason with the others
                fail(why);
                throw usage_error("ranks", why);
            }
            peers_[static_cast<std::size_t>(rank)] = std::move(one);
            --left;
        }
        for (std::size_t r = 1; r < peers_.size(); ++r)
            with(static_cast<int>(r), "the first meeting", timeout_,
                 [&] { send(peers_[r], Kind::hello, 0, {}, until); });
    }
    [[noreturn]] void missing() {
        std::string who;
        for (std::size_t r = 1; r < peers_.size(); ++r)
            if (!peers_[r].open()) who += fmt::format("{}{}", who.empty() ? "" : ", ", r);
        const std::string why = fmt::format("rank {} did not come to {} within {} s", who, place_,
                                            std::chrono::duration<double>(timeout_).count());
        fail(why);
        throw Error(ErrorKind::backend, "MASTER_ADDR", why);
    }

    void join(const ProcessRank& own, const std::string& run, Deadline until) {
        Socket& zero = peers_[0];
        std::string why;
        while (!(zero = connected(own, why)).open()) {
            if (Clock::now() > until)
                throw Error(ErrorKind::backend, "MASTER_ADDR",
                            fmt::format("rank 0 cannot be reached at {} ({})", place_, why));
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
        without_delay(zero);
        Message answer;
        try {
            send(zero, Kind::hello, rank_, run, until);
            answer = receive_message(zero, until + std::chrono::seconds(2));
        } catch (const Gone&) {
            lost(0);
        } catch (const Late&) {
            late(0, "the first meeting", timeout_);
        }
        if (answer.header.kind == Kind::failure) throw usage_error("ranks", answer.bytes);
    }

    struct Addresses {
        addrinfo* list = nullptr;
        Addresses() = default;
        Addresses(const Addresses&) = delete;
        Addresses& operator=(const Addresses&) = delete;
        ~Addresses() {
            if (list) ::freeaddrinfo(list);
        }
    };
    static std::string look_up(const ProcessRank& own, Addresses& to, int flags) {
        addrinfo hints{};
        hints.ai_family = AF_UNSPEC;
        hints.ai_socktype = SOCK_STREAM;
        hints.ai_flags = flags | AI_NUMERICSERV;
        const int status =
            ::getaddrinfo(own.address.c_str(), std::to_string(own.port).c_str(), &hints, &to.list);
        return status == 0 ? "" : ::gai_strerror(status);
    }
    static Socket connected(const ProcessRank& own, std::string& why) {
        Addresses found;
        why = look_up(own, found, 0);
        for (const addrinfo* a = found.list; a; a = a->ai_next) {
            Socket one(::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol));
            if (one.open() && ::connect(one.get(), a->ai_addr, a->ai_addrlen) == 0) return one;
            why = system_reason(errno);
        }
        return Socket();
    }
    Socket listen_at(const ProcessRank& own) const {
        Addresses found;
        std::string why = look_up(own, found, AI_PASSIVE);
        for (const addrinfo* a = found.list; a; a = a->ai_next) {
            Socket one(::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol));
            const int yes = 1;
            if (one.open()) ::setsockopt(one.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
            if (one.open() && ::bind(one.get(), a->ai_addr, a->ai_addrlen) == 0 &&
                ::listen(one.get(), SOMAXCONN) == 0)
                return one;
            why = system_reason(errno);
        }
        throw Error(ErrorKind::backend, "MASTER_ADDR",
                    fmt::format("rank 0 cannot listen at {} ({})", place_, why));
    }
    static void without_delay(const Socket& socket) {
        const int yes = 1;
        ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    }

    const int rank_;
    std::vector<Socket> peers_;  // of rank 0: all others; of the others: rank 0
    const std::chrono::milliseconds timeout_;
    std::string place_;
};

}  // namespace

std::shared_ptr<HostLink> make_tcp_link(const ProcessRank& own, int ranks, const std::string& run,
                                        std::chrono::milliseconds timeout) {
    return std::make_shared<TcpLink>(own, ranks, run, timeout);
}

}  // namespace fp8lab::cuda
