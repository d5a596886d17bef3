#include "core/nn/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/formats/codec.h"

namespace fp8lab {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are copied as they lie in memory");

using nlohmann::json;
constexpr std::size_t kPrefix = 8, kLongestHeader = std::size_t{16} << 20;

struct Entry {
    std::string name, dtype;
    std::vector<std::size_t> shape;
    std::size_t begin = 0, end = 0;  // in the buffer after the header
};

class Reader {
  public:
    Reader(std::span<const std::byte> bytes, const std::string& where) : bytes_(bytes), where_(where) {}

    SafeTensors read() {
        const json header = read_header();
        SafeTensors file;
        std::vector<Entry> entries;
        for (const auto& [name, value] : header.items()) {
            if (name == "__metadata__")
                read_metadata(value, file);
            else
                entries.push_back(read_entry(name, value));
        }
        check_layout(entries);
        for (const Entry& entry : entries) file.tensors[entry.name] = {entry.shape, read_values(entry)};
        return file;
    }

  private:
    [[noreturn]] void fail(std::size_t offset, std::string_view why) const {
        throw input_error(where_, fmt::format("byte {}: {}", offset, why));
    }
    [[noreturn]] void fail_tensor(std::string_view name, std::string_view why) const {
        throw input_error(where_, fmt::format("tensor '{}': {}", name, why));
    }

    json read_header() {
        if (bytes_.size() < kPrefix) fail(bytes_.size(), "truncated: the 8-byte header length is missing");
        std::uint64_t length = 0;
        std::memcpy(&length, bytes_.data(), kPrefix);
        if (length > kLongestHeader) fail(0, fmt::format("not a safetensors file: header length {}", length));
        if (length > bytes_.size() - kPrefix)
            fail(bytes_.size(), fmt::format("truncated: the header should have {} bytes", length));
        data_ = bytes_.subspan(kPrefix + length);
        const char* text = reinterpret_cast<const char*>(bytes_.data()) + kPrefix;
        try {
            json header = json::parse(text, text + length);
            if (!header.is_object()) fail(kPrefix, "the header is not a JSON object");
            return header;
        } catch (const json::parse_error& error) {
            fail(kPrefix + error.byte, "the header is not valid JSON");
        }
    }

    void read_metadata(const json& value, SafeTensors& file) const {
        if (!value.is_object()) fail_tensor("__metadata__", "is not an object");
        for (const auto& [key, text] : value.items()) {
            if (!text.is_string()) fail_tensor("__metadata__", "'" + key + "' is not a string");
            file.metadata[key] = text.get<std::string>();
        }
    }

    Entry read_entry(const std::string& name, const json& value) const {
        const auto sizes = [&](std::string_view key) {
            std::vector<std::size_t> result;
            if (!value.contains(key) || !value[key].is_array())
                fail_tensor(name, fmt::format("no array '{}'", key));
            for (const json& item : value[key]) {
                if (!item.is_number_unsigned())
                    fail_tensor(name, fmt::format("'{}' holds more than sizes", key));
                result.push_back(item.get<std::size_t>());
            }
            return result;
        };
        if (!value.is_object() || !value.contains("dtype") || !value["dtype"].is_string())
            fail_tensor(name, "no dtype");
        const auto offsets = sizes("data_offsets");
        if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data_.size())
            fail_tensor(name, fmt::format("data_offsets are not within the {} bytes of data", data_.size()));
        Entry entry{name, value["dtype"].get<std::string>(), sizes("shape"), offsets[0], offsets[1]};
        std::size_t bytes = width(entry);
        for (const std::size_t size : entry.shape)
            if (__builtin_mul_overflow(bytes, size, &bytes)) fail_tensor(name, "the shape is too large");
        if (bytes != entry.end - entry.begin)
            fail_tensor(name, fmt::format("the shape needs {} bytes, data_offsets give {}", bytes,
                                          entry.end - entry.begin));
        return entry;
    }

    std::size_t width(const Entry& entry) const {
        if (entry.dtype == "F64") return 8;
        if (entry.dtype == "F32") return 4;
        if (entry.dtype == "F16" || entry.dtype == "BF16") return 2;
        fail_tensor(entry.name, "dtype " + entry.dtype + " is not one of F32 F64 F16 BF16");
    }

    void check_layout(std::vector<Entry>& entries) const {
        std::ranges::sort(entries, {}, [](const Entry& e) { return std::pair{e.begin, e.end}; });
        const std::size_t data_start = bytes_.size() - data_.size();
        std::size_t covered = 0;
        for (const Entry& entry : entries) {
            if (entry.begin != covered)
                fail(data_start + covered, fmt::format("tensor '{}' leaves a gap or overlaps", entry.name));
            covered = entry.end;
        }
        if (covered != data_.size()) fail(data_start + covered, "bytes that belong to no tensor");
    }

    template <class Stored>
    std::vector<Stored> copy(const Entry& entry) const {
        std::vector<Stored> stored((entry.end - entry.begin) / sizeof(Stored));
        if (!stored.empty()) std::memcpy(stored.data(), data_.data() + entry.begin, entry.end - entry.begin);
        return stored;
    }

    std::vector<float> read_values(const Entry& entry) const {
        if (entry.dtype == "F32") return copy<float>(entry);
        if (entry.dtype == "F64") {
            const auto stored = copy<double>(entry);
            std::vector<float> values(stored.size());
            std::ranges::transform(stored, values.begin(), [](double v) { return static_cast<float>(v); });
            return values;
        }
        const auto stored = copy<std::uint16_t>(entry);
        std::vector<float> values(stored.size());
        decode(find_format(entry.dtype == "F16" ? "fp16" : "bf16"), stored, values);
        return values;
    }

    std::span<const std::byte> bytes_, data_;
    const std::string& where_;
};

}  // namespace

SafeTensors parse_safetensors(std::span<const std::byte> bytes, const std::string& where) {
    return Reader(bytes, where).read();
}

std::vector<std::byte> to_safetensors(const SafeTensors& file) {
    json header = json::object();
    if (!file.metadata.empty()) header["__metadata__"] = file.metadata;
    std::size_t offset = 0;
    for (const auto& [name, tensor] : file.tensors) {
        const std::size_t end = offset + tensor.values.size() * sizeof(float);
        header[name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
        offset = end;
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');  // keeps the tensors aligned, as the format recommends
    std::vector<std::byte> bytes(kPrefix + text.size() + offset);
    const std::uint64_t length = text.size();
    std::memcpy(bytes.data(), &length, kPrefix);
    std::memcpy(bytes.data() + kPrefix, text.data(), text.size());
    std::byte* out = bytes.data() + kPrefix + text.size();
    for (const auto& [name, tensor] : file.tensors) {
        const std::size_t size = tensor.values.size() * sizeof(float);
        if (size > 0) std::memcpy(out, tensor.values.data(), size);
        out += size;
    }
    return bytes;
}

}  // namespace fp8lab
