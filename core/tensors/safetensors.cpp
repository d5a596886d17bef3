#include "core/tensors/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "core/files/memory.h"
#include "core/json/read_json.h"

namespace fp8lab {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are copied as they lie in memory");

using nlohmann::json;
constexpr std::size_t kPrefix = 8, kLongestHeader = 100'000'000;  // the format's own limit

std::uint64_t header_length(std::span<const std::byte> head, const std::string& where) {
    std::uint64_t length = 0;
    std::memcpy(&length, head.data(), kPrefix);
    if (length > kLongestHeader)
        throw input_error(where, fmt::format("byte 0: not a safetensors file: header length {}", length));
    return length;
}

class HeaderReader {
  public:
    // `head`: of a file of that size, up to the end of its header at least.
    HeaderReader(std::span<const std::byte> head, std::uint64_t size, const std::string& where)
        : head_(head), size_(size), where_(where) {}

    // Returns where the last tensor ends.
    std::uint64_t read(SafeTensorsIndex& index) {
        find_header();
        // A member at a time: the whole as JSON would have ten times the bytes of the header.
        std::string name;
        bool is_object = false;
        const auto take = [&](int depth, json::parse_event_t event, const json& parsed) {
            using enum json::parse_event_t;
            if (depth == 0) is_object |= event == object_start;
            if (depth != 1 || !is_object) return true;
            if (event == key) name = parsed.get<std::string>();
            if (event != object_end && event != array_end && event != value) return true;
            read_member(name, parsed, index);
            return false;
        };
        try {
            [[maybe_unused]] const json emptied = json::parse(text_, take);
        } catch (const json::parse_error& error) {
            fail(kPrefix + error.byte, "the header is not valid JSON");
        } catch (const json::out_of_range&) {  // a number that no double holds
            fail(kPrefix, "the header is not valid JSON: a number is out of range");
        }
        if (!is_object) fail(kPrefix, "the header is not a JSON object");
        return check_layout(index);
    }

  private:
    [[noreturn]] void fail(std::uint64_t offset, std::string_view why) const {
        throw input_error(where_, fmt::format("byte {}: {}", offset, why));
    }
    // At the tensor's name in the header; at the header's start where it is spelt with escapes of another
    // kind.
    [[noreturn]] void fail_tensor(const std::string& name, std::string_view why) const {
        const std::size_t at = text_.find(json(name).dump());
        fail(kPrefix + (at == text_.npos ? 0 : at), fmt::format("tensor '{}': {}", quote_from(name), why));
    }

    void find_header() {
        if (size_ < kPrefix) fail(size_, "truncated: the 8-byte header length is missing");
        const std::uint64_t length = header_length(head_, where_);
        if (length > size_ - kPrefix)
            fail(size_, fmt::format("truncated: the header should have {} bytes", length));
        data_start_ = kPrefix + length;
        text_ = {reinterpret_cast<const char*>(head_.data()) + kPrefix, static_cast<std::size_t>(length)};
    }

    void read_member(const std::string& name, const json& value, SafeTensorsIndex& index) const {
        if (name == "__metadata__")
            read_metadata(value, index);
        else
            index.tensors[name] = read_entry(name, value);
    }

    void read_metadata(const json& value, SafeTensorsIndex& index) const {
        if (!value.is_object()) fail_tensor("__metadata__", "is not an object");
        for (const auto& [key, text] : value.items()) {
            if (!text.is_string()) fail_tensor("__metadata__", "'" + quote_from(key) + "' is not a string");
            index.metadata[key] = text.get<std::string>();
        }
    }

    template <class Size>
    std::vector<Size> read_sizes(const std::string& name, const json& value, const char* key) const {
        std::vector<Size> sizes;
        if (!value.contains(key) || !value[key].is_array())
            fail_tensor(name, fmt::format("no array '{}'", key));
        for (const json& item : value[key]) {
            if (!item.is_number_unsigned()) fail_tensor(name, fmt::format("'{}' holds more than sizes", key));
            const auto size = item.get<std::uint64_t>();
            if (!std::in_range<Size>(size))
                fail_tensor(name, fmt::format("'{}': {} is too large", key, size));
            sizes.push_back(static_cast<Size>(size));
        }
        return sizes;
    }

    SafeTensorInfo read_entry(const std::string& name, const json& value) const {
        if (!value.is_object() || !value.contains("dtype") || !value["dtype"].is_string())
            fail_tensor(name, "no dtype");
        SafeTensorInfo info{value["dtype"].get<std::string>(), read_sizes<std::size_t>(name, value, "shape")};
        const auto offsets = read_sizes<std::uint64_t>(name, value, "data_offsets");
        const std::uint64_t data_size = size_ - data_start_;
        if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data_size)
            fail_tensor(name, fmt::format("data_offsets are not within the {} bytes of data", data_size));
        info.begin = data_start_ + offsets[0], info.end = data_start_ + offsets[1];
        std::uint64_t bits = bits_of_dtype(info.dtype);
        if (bits == 0) return info;
        for (const std::size_t size : info.shape)
            if (__builtin_mul_overflow(bits, size, &bits)) fail_tensor(name, "the shape is too large");
        if (bits % 8 != 0) fail_tensor(name, "the shape ends in the midst of a byte");
        const std::uint64_t bytes = bits / 8;
        if (bytes != info.end - info.begin)
            fail_tensor(name, fmt::format("the shape needs {} bytes, data_offsets give {}", bytes,
                                          info.end - info.begin));
        if (!std::in_range<std::size_t>(bytes)) fail_tensor(name, "more bytes than this machine can address");
        return info;
    }

    std::uint64_t check_layout(const SafeTensorsIndex& index) const {
        std::vector<std::pair<const SafeTensorInfo*, std::string_view>> order;
        for (const auto& [name, info] : index.tensors) order.emplace_back(&info, name);
        std::ranges::sort(order, {}, [](const auto& e) { return std::pair{e.first->begin, e.first->end}; });
        std::uint64_t covered = data_start_;
        for (const auto& [info, name] : order) {
            if (info->begin != covered)
                fail(covered,
                     fmt::format("tensor '{}' leaves a gap or overlaps", quote_from(std::string(name))));
            covered = info->end;
        }
        return covered;
    }

    std::span<const std::byte> head_;
    std::uint64_t size_;
    std::string_view text_;  // the header's
    std::uint64_t data_start_ = 0;
    const std::string& where_;
};

SafeTensorsIndex index_whole(std::span<const std::byte> head, std::uint64_t size, const std::string& where) {
    SafeTensorsIndex index;
    const std::uint64_t end = HeaderReader(head, size, where).read(index);
    if (end != size) throw input_error(where, fmt::format("byte {}: bytes that belong to no tensor", end));
    return index;
}

}  // namespace

SafeTensorsIndex index_safetensors(std::span<const std::byte> bytes, const std::string& where) {
    return index_whole(bytes, bytes.size(), where);
}

SafeTensorsIndex index_safetensors(const RandomFile& file) {
    std::vector<std::byte> head = file.read_some(0, kPrefix);
    if (head.size() == kPrefix) head = file.read_some(0, kPrefix + header_length(head, file.where()));
    return index_whole(head, file.size(), file.where());
}

std::uint64_t safetensors_size(std::span<const std::byte> head, const std::string& where) {
    if (head.size() < kPrefix) return kPrefix;
    const std::uint64_t length = header_length(head, where);
    if (head.size() - kPrefix < length) return kPrefix + length;
    constexpr std::uint64_t kAnySize = std::uint64_t{1} << 62;  // the header alone is judged
    SafeTensorsIndex index;
    return HeaderReader(head, kAnySize, where).read(index);
}

void require_float(const SafeTensorInfo& info, const std::string& where) {
    if (is_float_dtype(info.dtype)) return;
    throw input_error(where, fmt::format("byte {}: dtype {} is not one of {}", info.begin,
                                         quote_from(info.dtype), float_dtypes()));
}

std::vector<float> read_safetensor(std::span<const std::byte> bytes, const SafeTensorInfo& info,
                                   const std::string& where) {
    require_float(info, where);
    const std::span<const std::byte> stored = bytes.subspan(info.begin, info.end - info.begin);
    std::vector<float> values(elements_in(info.dtype, stored.size()));
    decode_stored(info.dtype, stored, values);
    return values;
}

std::vector<float> read_safetensor(const RandomFile& file, const SafeTensorInfo& info) {
    require_float(info, file.where());
    std::vector<std::byte> stored = file.read_some(info.begin, info.end - info.begin);
    const std::size_t count = elements_in(info.dtype, stored.size());
    require_memory(file.where(), static_cast<double>(count) * sizeof(float));
    std::vector<float> values(count);
    decode_stored(info.dtype, stored, values);
    return values;
}

SafeTensors parse_safetensors(std::span<const std::byte> bytes, const std::string& where) {
    SafeTensorsIndex index = index_safetensors(bytes, where);
    SafeTensors file{{}, std::move(index.metadata)};
    for (const auto& [name, info] : index.tensors)
        file.tensors[name] = {info.shape, read_safetensor(bytes, info, where)};
    return file;
}

void write_safetensors(const SafeTensors& file,
                       const std::function<void(std::span<const std::byte>)>& write) {
    json header = json::object();
    if (!file.metadata.empty()) header["__metadata__"] = file.metadata;
    std::size_t offset = 0;
    for (const auto& [name, tensor] : file.tensors) {
        const std::size_t end = offset + tensor.values.size() * sizeof(float);
        header[name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
        offset = end;
    }
    // A path in the metadata may be no UTF-8. The tensors must not be lost for that.
    std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace);
    text.resize((text.size() + 7) / 8 * 8, ' ');  // keeps the tensors aligned, as the format recommends
    const std::uint64_t length = text.size();
    write(std::as_bytes(std::span(&length, 1)));
    write(std::as_bytes(std::span(text)));
    for (const auto& [name, tensor] : file.tensors) write(std::as_bytes(std::span(tensor.values)));
}

std::vector<std::byte> to_safetensors(const SafeTensors& file) {
    std::vector<std::byte> bytes;
    write_safetensors(file, [&bytes](std::span<const std::byte> piece) {
        bytes.insert(bytes.end(), piece.begin(), piece.end());
    });
    return bytes;
}

}  // namespace fp8lab
