# Turns the net files in IN into one C table in OUT, so that the installed program needs no files.
# A file goes through as hexadecimal digits, because CMake's own strings and lists would change brackets,
# semicolons, backslashes and empty lines: the table holds the file byte for byte.
file(GLOB nets "${IN}/*.net")
list(SORT nets)
set(text "/* Generated from nets/ by cmake/embed.cmake. */\n#include \"net/presets.h\"\n\n")
string(APPEND text "const lt_preset lt_presets[] = {\n")
foreach(net ${nets})
    get_filename_component(name "${net}" NAME_WLE)
    file(READ "${net}" bytes HEX)
    string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")
    if(bytes MATCHES "x00")
        message(FATAL_ERROR "${net} holds a zero byte: a net file is plain text")
    endif()
    string(REPLACE "\\x0a" "\\x0a\"\n     \"" bytes "${bytes}") # one line of C for one line of the file
    string(APPEND text "    {\"${name}\",\n     \"${bytes}\"},\n")
endforeach()
string(APPEND text "    {0, 0},\n};\n")
file(WRITE "${OUT}" "${text}")
