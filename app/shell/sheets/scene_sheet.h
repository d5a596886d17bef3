// The sheet that makes a scene of the lab as it stands: a title, notes, what the room is asked before it sees
// anything, then a file or one line of text.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "app/frame/host.h"
#include "core/lesson/scene.h"
#include "labs/lab.h"
#include "labs/ui/context.h"

namespace fp8lab {

class SceneSheet {
  public:
    void open(Lab& lab, std::filesystem::path folder, const Host& host);  // folder: where scenes are saved
    struct Done {
        bool closed = false;
        std::string title, line;  // what became of it; empty: nothing yet
    };
    Done draw(ui::Context& context, Lab& lab);

  private:
    std::filesystem::path file(const std::string& title) const;
    void draw_vote(ui::Context& context);
    Scene scene(Lab& lab) const;  // throws input_error: a vote without choices, say
    const Host* host_ = nullptr;
    std::filesystem::path folder_;
    std::string title_, notes_, question_, choices_, problem_;
    int right_ = -1;        // which of the choices; -1: none
    bool replace_ = false;  // a file of that name is there, and was asked about
};

}  // namespace fp8lab
