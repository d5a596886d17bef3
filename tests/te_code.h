// What is wrong with Transformer Engine code that the program hands out: names that it does not have, values that it
// does not take, arguments that it refuses together. tests/unit/scaling/te_signatures.json has the facts, read from its
// source at one commit; nothing here comes from the code that is tested.
#pragma once

#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/json.h"

namespace fp8lab::test {

class TeSignatures {
  public:
    explicit TeSignatures(const std::string& json) : facts_(parsed(json)) {}

    // In sentences; empty: nothing.
    std::vector<std::string> problems(const std::string& text) const {
        std::vector<std::string> out;
        std::string code, comments;
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);) {
            const auto hash = line.find('#');
            code += line.substr(0, hash) + "\n";
            if (hash != line.npos) comments += line.substr(hash) + "\n";
        }
        check_words(code + comments, out);
        check_calls(code, out);
        return out;
    }

  private:
    static std::vector<std::smatch> all(const std::string& text, const std::regex& pattern) {
        return {std::sregex_iterator(text.begin(), text.end(), pattern), std::sregex_iterator()};
    }

    void check_words(const std::string& text, std::vector<std::string>& out) const {
        static const std::regex kVariable(R"((NVTE_\w+)=?(\w*))"), kName(R"(\bte\.\w+)");
        for (const std::smatch& found : all(text, kVariable)) {
            const auto& known = facts_.at("variables");
            if (!known.contains(found[1].str()))
                out.push_back("no variable " + found[1].str());
            else if (!has(known.at(found[1].str()), found[2].str()))
                out.push_back(found[1].str() + " does not take '" + found[2].str() + "'");
        }
        for (const std::smatch& found : all(text, kName))
            if (!has(facts_.at("names"), found[0].str())) out.push_back("no " + found[0].str());
        for (const char* list : {"deprecated", "no_effect_on_linears"})
            for (const auto& word : facts_.at(list))
                if (text.find(word.get<std::string>()) != text.npos)
                    out.push_back(word.get<std::string>() + ": " + list);
    }

    // Every NAME(...) outside comments: its arguments are all "name=value", but for the one of a call of the block.
    void check_calls(const std::string& code, std::vector<std::string>& out) const {
        static const std::regex kCall(R"(([A-Za-z_][\w.]*)\()");
        for (const std::smatch& found : all(code, kCall)) {
            const std::string name = found[1];
            if (!facts_.at("calls").contains(name)) {
                out.push_back("no call " + name);
                continue;
            }
            std::map<std::string, std::string> given;
            for (const std::string& argument : arguments(code, found.position() + found.length())) {
                const auto equals = argument.find('=');
                if (equals == argument.npos && name == "block") continue;  // x
                const std::string key = argument.substr(0, equals);
                given[key] = equals == argument.npos ? "" : argument.substr(equals + 1);
                check_argument(name, key, given[key], out);
            }
            for (const auto& rule : facts_.at("needs")) check_rule(rule, name, given, out);
        }
    }

    static std::vector<std::string> arguments(const std::string& code, std::ptrdiff_t from) {
        std::vector<std::string> out(1);
        int depth = 0;
        for (auto i = static_cast<std::size_t>(from); i < code.size(); ++i) {
            const char c = code[i];
            if (c == ')' && depth-- == 0) break;
            depth += c == '(' ? 1 : 0;
            if (c == ',' && depth == 0)
                out.emplace_back();
            else if (c != ' ' && c != '\n')
                out.back() += c;
        }
        if (out.back().empty()) out.pop_back();
        return out;
    }

    void check_argument(const std::string& call, const std::string& key, const std::string& value,
                        std::vector<std::string>& out) const {
        static const std::regex kInteger("-?[0-9]+");
        const auto& arguments = facts_.at("calls").at(call);
        if (!arguments.contains(key)) {
            out.push_back(call + " has no argument '" + key + "'");
            return;
        }
        const auto& takes = arguments.at(key);
        const bool fits = takes.is_array()     ? has(takes, value)
                          : takes == "bool"    ? value == "True" || value == "False"
                          : takes == "integer" ? std::regex_match(value, kInteger)
                                               : !value.empty();
        if (!fits) out.push_back(call + ": " + key + " does not take " + value);
    }

    static void check_rule(const nlohmann::json& rule, const std::string& call,
                           const std::map<std::string, std::string>& given, std::vector<std::string>& out) {
        if (rule.at("call") != call) return;
        for (const auto& [key, values] : rule.at("with").items()) {
            const auto it = given.find(key);
            const std::string needed = rule.at("argument"), name = needed.substr(0, needed.find('='));
            if (it == given.end() || !has(values, it->second)) continue;
            if (!given.contains(name) || name + "=" + given.at(name) != needed)
                out.push_back(call + ": " + key + "=" + it->second + " needs " + needed);
        }
    }

    static bool has(const nlohmann::json& list, const std::string& value) {
        return std::ranges::any_of(list, [&](const auto& item) { return item == value; });
    }

    nlohmann::json facts_;
};

}  // namespace fp8lab::test
