#include "labs/ui/fonts.h"

#include <ft2build.h>
#include <imgui_freetype.h>
#include FT_FREETYPE_H

#include <array>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "core/base/error.h"
#include "core/files/files.h"

namespace fp8lab::ui {
namespace {

struct FaceFile {
    Face face;
    const char* folder;
    const char* file;
    const char* package;
};
constexpr std::array kFaces = {
    FaceFile{Face::sans, "/usr/share/fonts/opentype/inter", "Inter-Regular.otf", "fonts-inter"},
    FaceFile{Face::sans_bold, "/usr/share/fonts/opentype/inter", "Inter-SemiBold.otf", "fonts-inter"},
    FaceFile{Face::mono, "/usr/share/fonts/truetype/jetbrains-mono", "JetBrainsMono-Regular.ttf",
             "fonts-jetbrains-mono"},
    FaceFile{Face::mono_bold, "/usr/share/fonts/truetype/jetbrains-mono", "JetBrainsMono-SemiBold.ttf",
             "fonts-jetbrains-mono"},
};
constexpr std::array kSizes = {13, 15, 18, 24, 32};

// Latin-1, general punctuation (thin space, dashes, quotes, ellipsis), arrows, minus and the signs next to
// it.
constexpr ImWchar kGlyphs[] = {0x0020, 0x00FF, 0x2009, 0x2009, 0x2013, 0x2026, 0x2190,
                               0x2193, 0x2208, 0x2208, 0x2212, 0x2212, 0x221A, 0x221E,
                               0x2248, 0x2248, 0x2260, 0x2265, 0x03B1, 0x03C9, 0};

std::string find_face(const FaceFile& face) {
    std::error_code ignored;
    try {
        const auto own = asset(std::string("fonts/") + face.file);
        if (std::filesystem::exists(own, ignored)) return own.string();
    } catch (const Error&) {  // no such asset: the distribution's face is used
    }
    const auto system = std::filesystem::path(face.folder) / face.file;
    if (std::filesystem::exists(system, ignored)) return system.string();
    throw Error{
        ErrorKind::failed, "fonts",
        system.string() + " is missing: install the package " + face.package + " (scripts/setup.sh does)"};
}

// FreeType's view of a face, for what ImGui's builder does not give: the true advance of a glyph.
class FreeTypeFace {
  public:
    explicit FreeTypeFace(const std::string& path) {
        const bool ok =
            FT_Init_FreeType(&library_) == 0 && FT_New_Face(library_, path.c_str(), 0, &face_) == 0;
        if (!ok) {
            if (library_ != nullptr) FT_Done_FreeType(library_);
            throw Error{ErrorKind::failed, "fonts", path + " is not a font that FreeType can read"};
        }
    }
    ~FreeTypeFace() {
        FT_Done_Face(face_);
        FT_Done_FreeType(library_);
    }
    FreeTypeFace(const FreeTypeFace&) = delete;
    FreeTypeFace& operator=(const FreeTypeFace&) = delete;

    // ImGui asks FreeType for ascent + descent, we think in em: 13 px Inter is 16 px from ascender to
    // descender.
    // It takes whole pixels; mono is rounded up, or else its capitals would be lower than Inter's at 13.
    float builder_size(float em_px, bool up) const {
        const auto height = static_cast<float>(face_->ascender - face_->descender);
        const float size = em_px * height / static_cast<float>(face_->units_per_EM);
        return up ? std::ceil(size) : std::round(size);
    }
    float advance_px(unsigned codepoint, float em_px) {
        if (FT_Load_Char(face_, codepoint, FT_LOAD_NO_SCALE) != 0) return 0;
        return static_cast<float>(face_->glyph->advance.x) * em_px / static_cast<float>(face_->units_per_EM);
    }

  private:
    FT_Library library_ = nullptr;
    FT_Face face_ = nullptr;
};

// The builder rounds every advance up, which sets small text too wide, and places each family's baseline
// elsewhere.
void correct_metrics(ImFont& font, FreeTypeFace& face, float em_px) {
    const float shift = std::round(kBaseline * em_px) - std::round(font.Ascent);
    for (auto& glyph : font.Glyphs) {
        glyph.AdvanceX = std::round(face.advance_px(glyph.Codepoint, em_px));
        glyph.Y0 += shift;
        glyph.Y1 += shift;
    }
    constexpr ImWchar kThinSpace = 0x2009;  // JetBrains Mono has none
    if (font.FindGlyphNoFallback(kThinSpace) == nullptr) {
        font.AddGlyph(nullptr, kThinSpace, 0, 0, 0, 0, 0, 0, 0, 0, std::round(em_px / 4));
    }
    font.BuildLookupTable();
}

}  // namespace

int font_key(Font font) {
    int nearest = kSizes.front();
    for (const int size : kSizes) {
        if (std::abs(static_cast<float>(size) - font.size) <
            std::abs(static_cast<float>(nearest) - font.size))
            nearest = size;
    }
    return static_cast<int>(font.face) * 100 + nearest;
}

std::vector<std::string> font_files() {
    std::vector<std::string> files;
    for (const auto& face : kFaces) files.push_back(find_face(face));
    return files;
}

void load_fonts(Context& context) {
    const auto files = font_files();
    ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
    atlas.Clear();
    atlas.FontBuilderIO = ImGuiFreeType::GetBuilderForFreeType();
    atlas.FontBuilderFlags = ImGuiFreeTypeBuilderFlags_LightHinting;
    atlas.Flags |= ImFontAtlasFlags_NoMouseCursors;
    context.fonts.clear();
    for (const auto& face : kFaces) {
        const auto& file = files[static_cast<std::size_t>(face.face)];
        FreeTypeFace metrics{file};
        const bool mono = face.face == Face::mono || face.face == Face::mono_bold;
        for (const int size : kSizes) {
            ImFontConfig config;
            config.GlyphRanges = kGlyphs;
            ImFont* font = atlas.AddFontFromFileTTF(
                file.c_str(), metrics.builder_size(context.px(static_cast<float>(size)), mono), &config);
            context.fonts[font_key({face.face, static_cast<float>(size)})] = font;
        }
    }
    if (!atlas.Build())
        throw Error{ErrorKind::failed, "fonts", "the glyphs do not fit one texture at this scale"};
    for (const auto& face : kFaces) {
        FreeTypeFace metrics{files[static_cast<std::size_t>(face.face)]};
        for (const int size : kSizes) {
            const Font font{face.face, static_cast<float>(size)};
            correct_metrics(*context.font(font), metrics, context.px(font.size));
        }
    }
    ImGui::GetIO().FontDefault = context.font({Face::sans, 15});
}

}  // namespace fp8lab::ui
