// The page's own functions that C++ calls (page.js, emscripten's JavaScript library) and those of C++ that it calls.
#pragma once

#include <emscripten/em_types.h>

extern "C" {

// Of the canvas, in device pixels as the browser shows them: exact at every devicePixelRatio.
int page_width();
int page_height();
double page_pixel_ratio();
void page_cursor(const char* css_name);
void page_focus();                 // the keys come to the page: a click within a frame of another page
void page_copy(const char* text);  // into the clipboard
void page_download(const char* name, const void* bytes, size_t count);  // as a file of the user's downloads
void page_fullscreen(bool whole);
void page_ask_for_files();          // the browser's dialog; page_dropped() is called with what was chosen
char* page_address();               // without what is behind "#"; free() it
void page_go_on();                  // turns of the workers are due: calls page_do_turns() between frames
void page_failed(const char* why);  // nothing is drawn any more: says so in the page's place

}  // extern "C"
