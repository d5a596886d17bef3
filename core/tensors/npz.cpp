#include "core/tensors/npz.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/json/read_json.h"

namespace fp8lab {
namespace {

// The records of a ZIP archive: signature, and size without names and other parts of variable length.
constexpr std::uint32_t kMember = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                        kEnd64Place = 0x07064b50;
constexpr std::size_t kMemberSize = 30, kEntrySize = 46, kEndSize = 22, kEnd64Size = 56, kEnd64PlaceSize = 20;
constexpr std::uint32_t kIn64 = 0xFFFF'FFFF;  // the number is in the ZIP64 part
constexpr std::uint16_t kIn64Count = 0xFFFF, kZip64 = 1;

struct Member {
    std::string name;
    std::uint64_t record = 0, size = 0;  // where its record starts; bytes of its data
    std::uint64_t begin = 0;             // of the data
};

class Archive {
  public:
    Archive(std::span<const std::byte> bytes, const std::string& where) : bytes_(bytes), where_(where) {}

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
        if (at > bytes_.size() || size > bytes_.size() - at) fail(bytes_.size(), "the archive is truncated");
    }
    template <class T>
    T read(std::uint64_t at) const {
        need(at, sizeof(T));
        T value;
        std::memcpy(&value, bytes_.data() + at, sizeof value);
        return value;
    }
    std::string text(std::uint64_t at, std::size_t size) const {
        need(at, size);
        return {reinterpret_cast<const char*>(bytes_.data()) + at, size};
    }

    // The last record: behind it is only its comment, of at most 65 535 bytes.
    std::uint64_t find_end() const {
        if (bytes_.size() >= kEndSize)
            for (std::uint64_t back = kEndSize;
                 back <= std::min<std::uint64_t>(bytes_.size(), kEndSize + 65535); ++back) {
                const std::uint64_t at = bytes_.size() - back;
                if (read<std::uint32_t>(at) == kEnd &&
                    at + kEndSize + read<std::uint16_t>(at + 20) == bytes_.size())
                    return at;
            }
        fail(bytes_.size(), "not a whole ZIP archive: its directory is missing");
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
        std::uint64_t stored = read<std::uint32_t>(at + 20);
        need(at + kEntrySize + name, extra);
        read_zip64(at + kEntrySize + name, extra, member, stored);
        if (read<std::uint16_t>(at + 8) & 1) fail(member, at, "is encrypted");
        if (read<std::uint16_t>(at + 10) != 0)
            fail(member, at, "is compressed; save it with numpy.savez, not savez_compressed");
        if (stored != member.size) fail(member, at, "is not compressed and has two sizes");
        at += kEntrySize + name + extra + comment;
        return member;
    }

    // Of the sizes and the place, those that do not fit into 32 bits stand there, in this order.
    void read_zip64(std::uint64_t at, std::size_t extra, Member& member, std::uint64_t& stored) const {
        for (const std::uint64_t end = at + extra; at + 4 <= end;) {
            const auto tag = read<std::uint16_t>(at), size = read<std::uint16_t>(at + 2);
            std::uint64_t field = at + 4;
            at = field + size;
            if (at > end) fail(field, "an extra field is longer than its entry");
            if (tag != kZip64) continue;
            for (std::uint64_t* value : {&member.size, &stored, &member.record}) {
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
        if (member.begin > directory_ || member.size > directory_ - member.begin)
            fail(member, member.begin, "its data go on beyond the archive's directory");
    }

    void check_apart(std::vector<Member> members) const {
        std::ranges::sort(members, {}, &Member::record);
        for (std::size_t i = 1; i < members.size(); ++i)
            if (members[i].record < members[i - 1].begin + members[i - 1].size)
                fail(members[i], members[i].record, "overlaps '" + quote_from(members[i - 1].name) + "'");
    }

    std::span<const std::byte> bytes_;
    const std::string& where_;
    std::uint64_t directory_ = 0, directory_end_ = 0, count_ = 0;
};

}  // namespace

std::map<std::string, NpyIndex> index_npz(std::span<const std::byte> bytes, const std::string& where) {
    std::map<std::string, NpyIndex> out;
    for (const Member& member : Archive(bytes, where).members()) {
        constexpr std::string_view kEnding = ".npy";
        if (!member.name.ends_with(kEnding))
            throw input_error(where, fmt::format("byte {}: member '{}' is no .npy", member.record,
                                                 quote_from(member.name)));
        const std::string name = member.name.substr(0, member.name.size() - kEnding.size());
        // Places in messages are those of the member.
        NpyIndex index = index_npy(
            bytes.subspan(member.begin, member.size),
            fmt::format("{}: member '{}' from byte {}", where, quote_from(member.name), member.begin));
        index.begin += member.begin;
        index.end += member.begin;
        if (!out.emplace(name, std::move(index)).second)
            throw input_error(where, fmt::format("byte {}: two members are called '{}'", member.record,
                                                 quote_from(member.name)));
    }
    return out;
}

}  // namespace fp8lab
