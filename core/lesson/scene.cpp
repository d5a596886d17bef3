#include "core/lesson/scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/json/json_reader.h"

namespace fp8lab {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

// The schema number under `kind`, and a notice for each member that is not among `known`.
int read_head(const JsonReader& read, const OrderedJson& document, const char* kind, int ours,
              std::span<const std::string_view> known, std::vector<std::string>& notices) {
    if (!document.is_object() || !document.contains(kind))
        read.fail("", fmt::format("has no '{}': not such a file", kind));
    const int schema = read.integer(document[kind], std::string("/") + kind, 1, 1'000'000);
    if (schema > ours)
        notices.push_back(fmt::format("{} is written for a newer version (schema {}, this one knows {}).",
                                      read.where(), schema, ours));
    for (const auto& [name, value] : document.items())
        if (name != kind && std::ranges::find(known, name) == known.end())
            notices.push_back(fmt::format("'{}' ({}) is not known here; it is kept, and does nothing.",
                                          quote_from(name), read.place("/" + name)));
    return schema;
}

constexpr std::size_t kMostFields = 200, kMostInline = 1u << 16;

Scene::Vote vote_from(const JsonReader& read, const OrderedJson& json, const std::string& at) {
    read.object(json, at);
    Scene::Vote vote{.question = read.string(json, at, "question"),
                     .choices = read.strings(read.member(json, at, "choices"), at + "/choices", 2, 4)};
    if (json.contains("answer"))
        vote.answer =
            read.integer(json["answer"], at + "/answer", 0, static_cast<int>(vote.choices.size()) - 1);
    return vote;
}

Scene::Headline headline_from(const JsonReader& read, const OrderedJson& json, const std::string& at) {
    read.object(json, at);
    Scene::Headline out;
    out.metric = read.string(json, at, "metric");
    const OrderedJson& value = read.member(json, at, "value");
    if (value.is_string())
        out.word = value.get<std::string>();
    else
        out.value = read.number(value, at + "/value");
    if (json.contains("tolerance")) out.tolerance = read.number(json["tolerance"], at + "/tolerance");
    if (!(out.tolerance >= 0 && out.tolerance < 1)) read.fail(at + "/tolerance", "is a share from 0 to 1");
    return out;
}

Scene::Tensor tensor_from(const JsonReader& read, const OrderedJson& json, const std::string& at) {
    read.object(json, at);
    Scene::Tensor out;
    out.field = read.string(json, at, "field");
    if (json.contains("path")) {
        out.path = read.string(json, at, "path");
        return out;
    }
    std::size_t elements = 1;
    for (const OrderedJson& length : read.array(read.member(json, at, "shape"), at + "/shape", 1, 2)) {
        out.shape.push_back(static_cast<std::size_t>(
            read.integer(length, at + "/shape/" + std::to_string(out.shape.size()), 1, kMostInline)));
        elements *= out.shape.back();
    }
    const std::string values = at + "/values";
    for (const OrderedJson& value : read.array(read.member(json, at, "values"), values, 1, kMostInline))
        out.values.push_back(
            static_cast<float>(read.number(value, values + "/" + std::to_string(out.values.size()))));
    if (elements != out.values.size())
        read.fail(values, fmt::format("has {} values, its shape {}", out.values.size(), elements));
    return out;
}

// "minutes" of a deck or of a scene in it; 0: it has none.
int minutes_of(const JsonReader& read, const OrderedJson& json, const std::string& at) {
    constexpr int kMost = 1440;
    return json.contains("minutes") ? read.integer(json["minutes"], at + "/minutes", 1, kMost) : 0;
}

Cue cue_from(const JsonReader& read, const OrderedJson& json, const std::string& at) {
    return {.minutes = minutes_of(read, json, at),
            .say = read.string_or(json, at, "say"),
            .ask = read.string_or(json, at, "ask"),
            .act = read.string_or(json, at, "do")};
}

// Every scene of a deck with times has its own, and together they are the deck's.
void check_minutes(const JsonReader& read, const Deck& deck) {
    for (std::size_t i = 0; i < deck.scenes.size(); ++i)
        if ((deck.scenes[i].cue.minutes > 0) != (deck.minutes > 0))
            read.fail(fmt::format("/scenes/{}", i), deck.minutes > 0
                                                        ? "has no 'minutes', and the deck has"
                                                        : "has 'minutes', and the deck has none");
    if (const int sum = deck.begins_at(deck.scenes.size()); sum != deck.minutes)
        read.fail("/minutes", fmt::format("is {}, and the scenes take {}", deck.minutes, sum));
}

}  // namespace

Scene parse_scene(std::string_view text, const std::string& where) {
    static constexpr std::array<std::string_view, 16> kKnown = {
        "version", "lab",    "title",  "sentence", "notes",   "state", "tensors", "steps",
        "locked",  "hidden", "figure", "predict",  "numbers", "knob",  "compare", "headline"};
    Scene out;
    out.where = where;
    out.places = json_places(text, where);
    out.document = OrderedJson::parse(text);
    const OrderedJson& json = out.document;
    const JsonReader read(out.places, out.where);
    out.schema = read_head(read, json, "fp8lab_scene", kSceneSchema, kKnown, out.notices);
    out.lab = read.string(json, "", "lab");
    out.title = read.string(json, "", "title");
    out.sentence = read.string_or(json, "", "sentence");
    out.notes = read.string_or(json, "", "notes");
    out.figure = read.string_or(json, "", "figure");
    out.knob = read.string_or(json, "", "knob");
    if (json.contains("state")) out.state = read.object(json["state"], "/state");
    if (json.contains("compare")) out.compare = read.object(json["compare"], "/compare");
    if (out.state.size() > kMostFields) read.fail("/state", "has too many fields");
    if (json.contains("steps")) out.steps = read.integer(json["steps"], "/steps", 0, 10'000'000);
    if (json.contains("locked")) out.locked = read.strings(json["locked"], "/locked", 0, kMostFields);
    if (json.contains("hidden")) out.hidden = read.strings(json["hidden"], "/hidden", 0, kMostFields);
    if (json.contains("predict")) out.predict = vote_from(read, json["predict"], "/predict");
    if (json.contains("headline")) out.headline = headline_from(read, json["headline"], "/headline");
    if (json.contains("numbers"))
        for (const OrderedJson& number : read.array(json["numbers"], "/numbers", 0, 4)) {
            const std::string at = "/numbers/" + std::to_string(out.numbers.size());
            read.object(number, at);
            out.numbers.push_back({read.string(number, at, "metric"), read.string_or(number, at, "label")});
        }
    if (json.contains("tensors"))
        for (const OrderedJson& tensor : read.array(json["tensors"], "/tensors", 0, 4))
            out.tensors.push_back(
                tensor_from(read, tensor, "/tensors/" + std::to_string(out.tensors.size())));
    return out;
}

std::string scene_text(const Scene& scene) { return scene.document.dump(2) + "\n"; }

Deck parse_deck(std::string_view text, const std::string& where, const fs::path& folder) {
    static constexpr std::array<std::string_view, 5> kKnown = {"title", "scenes", "version", "minutes",
                                                               "prepare"};
    constexpr std::size_t kMostScenes = 500;
    const JsonPlaces places = json_places(text, where);
    const OrderedJson json = OrderedJson::parse(text);
    const JsonReader read(places, where);
    Deck deck;
    read_head(read, json, "fp8lab_deck", 1, kKnown, deck.notices);
    deck.title = read.string(json, "", "title");
    deck.minutes = minutes_of(read, json, "");
    if (json.contains("prepare")) deck.prepare = read.strings(json["prepare"], "/prepare", 0, kMostScenes);
    for (const OrderedJson& entry : read.array(read.member(json, "", "scenes"), "/scenes", 1, kMostScenes)) {
        const std::string at = "/scenes/" + std::to_string(deck.scenes.size());
        read.object(entry, at);
        const std::string name = read.string(entry, at, "scene");
        const fs::path file = deck_scene(folder, name);
        if (file.empty())
            read.fail(at + "/scene", fmt::format("scene '{}' does not exist: it is neither in {} nor shipped",
                                                 quote_from(name), folder.empty() ? "." : folder.string()));
        Scene& scene = deck.scenes.emplace_back(read_scene(file));
        deck.notices.insert(deck.notices.end(), scene.notices.begin(), scene.notices.end());
        if (entry.contains("notes")) scene.notes = read.string(entry, at, "notes");
        scene.cue = cue_from(read, entry, at);
    }
    check_minutes(read, deck);
    return deck;
}

int Deck::begins_at(std::size_t scene) const {
    int sum = 0;
    for (std::size_t i = 0; i < scene; ++i) sum += scenes[i].cue.minutes;
    return sum;
}

}  // namespace fp8lab
