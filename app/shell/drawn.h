// What is drawn in every frame while no lecture is on: rail, home or panel, status line.
#pragma once

#include <string>

#include "app/shell/exercises/claims.h"
#include "app/shell/layout.h"
#include "app/shell/parts.h"
#include "app/shell/sheets/term_picture.h"
#include "labs/ui/widgets.h"

namespace fp8lab {

// Home, the labs, the badge with its reason.
class Rail {
  public:
    explicit Rail(Parts& parts) : parts_(parts), context_(parts.common.context) {}
    void draw(const WindowLayout& layout);

  private:
    float draw_labs(const WindowLayout& layout);
    void draw_item(std::string_view id, std::string_view number, std::string_view title, float share,
                   float top, bool full);  // share: of its exercises passed; NaN: it has none
    ui::Press draw_disc(const char* name, Point center, const char* title, const char* key);
    void draw_theme_switch(Point center);
    void draw_keys_switch(Point center);
    void draw_machine(const WindowLayout& layout, float labs_end);

    Parts& parts_;
    ui::Context& context_;
    std::string shows_;  // the lab that the list was scrolled to
};

// Where to go on, and what each lab looks like.
class HomeScreen {
  public:
    explicit HomeScreen(Parts& parts) : parts_(parts), context_(parts.common.context) {}
    void draw(const WindowLayout& layout);
    void greet() { greeted_ = false; }  // the focus goes to Continue again

  private:
    float draw_continue(Rect stage);
    float draw_manual(float left, float end);
    float draw_card(Labs::Entry& entry, Rect card);
    void draw_keys(Rect area);
    std::string keys_of(std::string_view command) const;

    Parts& parts_;
    ui::Context& context_;
    bool greeted_ = false;  // the focus was put on Continue once
};

// The tabs, Export and Reset all, and the toast over them.
class Panel {
  public:
    explicit Panel(Parts& parts) : parts_(parts), context_(parts.common.context) {}
    void draw(const WindowLayout& layout, Labs::Entry& entry);
    void draw_toast(const WindowLayout& layout);  // without a panel the status line tells it

  private:
    void draw_head(const WindowLayout& layout, Labs::Entry& entry);
    void draw_tab(Labs::Entry& entry, Tab tab);
    void draw_buttons(Labs::Entry& entry, Rect panel);

    Parts& parts_;
    ui::Context& context_;
    ClaimCards claims_;
    TermPictures pictures_;  // in lessons
};

// What the lab computes with on the left; our own cost and the numbers' provenance on the right. `frame_ms`: our own work
// for the last frame; < 0: not shown.
void draw_status(Parts& parts, const WindowLayout& layout, double frame_ms);

}  // namespace fp8lab
