#include "core/tensors/npz.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/files/memory.h"
#include "core/json/read_json.h"
#include "core/tensors/inflate.h"

namespace fp8lab {
namespace {

// The records of a ZIP archive: signature, and size without names and other parts of variable length.
constexpr std::uint32_t kMember = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                        kEnd64Place = 0x07064b50;
constexpr std::size_t kMemberSize = 30, kEntrySize = 46, kEndSize = 22, kEnd64Size = 56, kEnd64PlaceSize = 20;
constexpr std::uint32_t kIn64 = 0xFFFF'FFFF;  // the number is in the ZIP64 part
constexpr std::uint16_t kIn64Count = 0xFFFF, kZip64 = 1, kStored = 0, kDeflated = 8;

struct Member {
    std::string name;
    std::uint64_t record = 0, size = 0;  // where its record starts; bytes of its data
    std::uint64_t stored = 0;            // bytes that they take in the archive
    std::uint64_t begin = 0;             // of the data
    std::uint32_t crc = 0;
    bool deflated = false;
};

class Archive {
  public:
    explicit Archive(const RandomFile& file) : file_(file), where_(file.where()) {}

    std::vector<Member> members() {
        find_directory();
        std::vector<Member> out;
        std::uint64_t at = directory_;
        for (std::uint64_t i = 0; i < count_; ++i) out.push_back(read_entry(at));
        if (at != directory_end_) fail(at, "the archive's directory has another size than it says");
        for (Member& member : out) locate(member);
        check_apart(out);
        return out;
    }

  private:
    [[noreturn]] void fail(std::uint64_t at, const std::string& why) const {
        throw input_error(where_, fmt::format("byte {}: {}", at, why));
    }
    [[noreturn]] void fail(const Member& member, std::uint64_t at, const std::string& why) const {
        fail(at, fmt::format("member '{}': {}", quote_from(member.name), why));
    }

    void need(std::uint64_t at, std::uint64_t size) const {
        if (at > file_.size() || size > file_.size() - at) fail(file_.size(), "the archive is truncated");
    }
    // A part of the file, read together with what follows it, where it is not there yet.
    const std::byte* at(std::uint64_t place, std::size_t size) const {
        constexpr std::size_t kWindow = std::size_t{1} << 16;
        need(place, size);
        if (place < window_at_ || place + size > window_at_ + window_.size()) {
            window_ = file_.read_some(place, std::max(size, kWindow));
            window_at_ = place;
        }
        return window_.data() + (place - window_at_);
    }
    template <class T>
    T read(std::uint64_t place) const {
        T value;
        std::memcpy(&value, at(place, sizeof value), sizeof value);
        return value;
    }
    std::string text(std::uint64_t place, std::size_t size) const {
        return {reinterpret_cast<const char*>(at(place, size)), size};
    }

    // The last record: behind it is only its comment, of at most 65 535 bytes.
    std::uint64_t find_end() const {
        const std::uint64_t size = file_.size(), most = std::min<std::uint64_t>(size, kEndSize + 65535);
        if (size >= kEndSize) at(size - most, most);  // all at once
        for (std::uint64_t back = kEndSize; back <= most; ++back) {
            const std::uint64_t place = size - back;
            if (read<std::uint32_t>(place) == kEnd &&
                place + kEndSize + read<std::uint16_t>(place + 20) == size)
                return place;
        }
        fail(size, "not a whole ZIP archive: its directory is missing");
    }

    void find_directory() {
        const std::uint64_t end = find_end();
        count_ = read<std::uint16_t>(end + 10);
        std::uint64_t size = read<std::uint32_t>(end + 12);
        directory_ = read<std::uint32_t>(end + 16);
        if (read<std::uint16_t>(end + 4) != 0 || read<std::uint16_t>(end + 6) != 0)
            fail(end, "archives in several parts are not supported");
        if (count_ == kIn64Count || size == kIn64 || directory_ == kIn64) {
            if (end < kEnd64PlaceSize || read<std::uint32_t>(end - kEnd64PlaceSize) != kEnd64Place)
                fail(end, "the ZIP64 part of the archive's directory is missing");
            const auto end64 = read<std::uint64_t>(end - kEnd64PlaceSize + 8);
            need(end64, kEnd64Size);
            if (read<std::uint32_t>(end64) != kEnd64) fail(end64, "no ZIP64 directory here");
            count_ = read<std::uint64_t>(end64 + 32);
            size = read<std::uint64_t>(end64 + 40);
            directory_ = read<std::uint64_t>(end64 + 48);
        }
        need(directory_, size);
        directory_end_ = directory_ + size;
        if (count_ > size / kEntrySize)
            fail(end, fmt::format("{} members do not fit into its directory", count_));
    }

    Member read_entry(std::uint64_t& at) const {
        if (read<std::uint32_t>(at) != kEntry) fail(at, "no entry of the archive's directory here");
        need(at, kEntrySize);
        const std::size_t name = read<std::uint16_t>(at + 28), extra = read<std::uint16_t>(at + 30),
                          comment = read<std::uint16_t>(at + 32);
        Member member{.name = text(at + kEntrySize, name),
                      .record = read<std::uint32_t>(at + 42),
                      .size = read<std::uint32_t>(at + 24)};
        member.stored = read<std::uint32_t>(at + 20);
        member.crc = read<std::uint32_t>(at + 16);
        need(at + kEntrySize + name, extra);
        read_zip64(at + kEntrySize + name, extra, member);
        if (read<std::uint16_t>(at + 8) & 1) fail(member, at, "is encrypted");
        const auto method = read<std::uint16_t>(at + 10);
        member.deflated = method == kDeflated;
        if (method != kStored && method != kDeflated)
            fail(member, at, "is compressed in another way than numpy does; save it with numpy.savez");
        if (!member.deflated && member.stored != member.size)
            fail(member, at, "is not compressed and has two sizes");
        // Deflate expands one byte to at most 1032.
        if (member.deflated && (member.size > kMostInflated || member.size / 1032 > member.stored))
            fail(member, at,
                 fmt::format("has {} bytes, of {} compressed ones; at most {} are read", member.size,
                             member.stored, kMostInflated));
        at += kEntrySize + name + extra + comment;
        return member;
    }

    // The field has those of the sizes and the place that do not fit into 32 bits, in this order.
    void read_zip64(std::uint64_t at, std::size_t extra, Member& member) const {
        for (const std::uint64_t end = at + extra; at + 4 <= end;) {
            const auto tag = read<std::uint16_t>(at), size = read<std::uint16_t>(at + 2);
            std::uint64_t field = at + 4;
            at = field + size;
            if (at > end) fail(field, "an extra field is longer than its entry");
            if (tag != kZip64) continue;
            for (std::uint64_t* value : {&member.size, &member.stored, &member.record}) {
                if (*value != kIn64) continue;
                if (field + 8 > at) fail(field, "the ZIP64 part of an entry is too short");
                *value = read<std::uint64_t>(field);
                field += 8;
            }
        }
    }

    void locate(Member& member) const {
        need(member.record, kMemberSize);
        if (read<std::uint32_t>(member.record) != kMember) fail(member, member.record, "has no record here");
        const std::size_t name = read<std::uint16_t>(member.record + 26),
                          extra = read<std::uint16_t>(member.record + 28);
        if (text(member.record + kMemberSize, name) != member.name)
            fail(member, member.record, "has another name in its record");
        member.begin = member.record + kMemberSize + name + extra;
        if (member.begin > directory_ || member.stored > directory_ - member.begin)
            fail(member, member.begin, "its data go on beyond the archive's directory");
    }

    void check_apart(std::vector<Member> members) const {
        std::ranges::sort(members, {}, &Member::record);
        for (std::size_t i = 1; i < members.size(); ++i)
            if (members[i].record < members[i - 1].begin + members[i - 1].stored)
                fail(members[i], members[i].record, "overlaps '" + quote_from(members[i - 1].name) + "'");
    }

    const RandomFile& file_;
    const std::string where_;
    std::uint64_t directory_ = 0, directory_end_ = 0, count_ = 0;
    mutable std::vector<std::byte> window_;
    mutable std::uint64_t window_at_ = 0;
};

// For inflate().
std::vector<std::byte> read_packed(const RandomFile& file, std::uint64_t begin, std::uint64_t size) {
    std::vector<std::byte> bytes(size + kInflateAhead);
    file.read(begin, std::span(bytes).first(size));
    return bytes;
}

// The first bytes of a member, up to the end of its header.
std::vector<std::byte> head_of(const RandomFile& file, const Member& member) {
    const auto first = [&](std::size_t count) {
        const auto size = std::min<std::uint64_t>(count, member.size);
        if (!member.deflated) return file.read_some(member.begin, size);
        // A block that is not compressed comes whole or not at all, and has less than 2^16 bytes.
        constexpr std::uint64_t kBlock = std::uint64_t{1} << 16;
        const std::vector<std::byte> packed =
            read_packed(file, member.begin, std::min(member.stored, 2 * (size + kBlock)));
        std::vector<std::byte> out(std::min(member.size, size + kBlock));
        inflate(packed, out);  // what is wrong with the rest is found when it is read
        out.resize(size);
        return out;
    };
    return first(npy_head_size(first(kNpyPrefix)));
}

}  // namespace

std::map<std::string, NpzArray> index_npz(const RandomFile& file) {
    std::map<std::string, NpzArray> out;
    for (const Member& member : Archive(file).members()) {
        constexpr std::string_view kEnding = ".npy";
        if (!member.name.ends_with(kEnding))
            throw input_error(file.where(), fmt::format("byte {}: member '{}' is no .npy", member.record,
                                                        quote_from(member.name)));
        const std::string name = member.name.substr(0, member.name.size() - kEnding.size());
        // Places in messages are those of the member.
        const std::string where =
            fmt::format("{}: member '{}' from byte {}", file.where(), quote_from(member.name), member.begin);
        NpzArray array{index_npy(head_of(file, member), member.size, where), {}};
        if (member.deflated) {
            array.packed = {member.begin, member.stored, member.size, member.crc};
        } else {
            array.index.begin += member.begin;
            array.index.end += member.begin;
        }
        if (!out.emplace(name, std::move(array)).second)
            throw input_error(file.where(), fmt::format("byte {}: two members are called '{}'", member.record,
                                                        quote_from(member.name)));
    }
    return out;
}

std::vector<std::byte> unpack(const RandomFile& file, const PackedMember& member) {
    require_memory(file.where(), static_cast<double>(member.size + member.stored));
    const std::vector<std::byte> packed = read_packed(file, member.begin, member.stored);
    std::vector<std::byte> out(member.size);
    if (inflate(packed, out) != out.size() || crc32(out) != member.crc)
        throw input_error(file.where(),
                          fmt::format("byte {}: the compressed data of a member are damaged", member.begin));
    return out;
}

}  // namespace fp8lab
