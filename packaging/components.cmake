# Read by cpack once for each kind of package: of each component a .deb is made, and one archive of all, with what only an
# archive carries.
if(CPACK_GENERATOR STREQUAL "TGZ")
    list(APPEND CPACK_COMPONENTS_ALL archive)
    set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
    set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
endif()
