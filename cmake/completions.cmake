# Generates the shell completion scripts with the program itself, so that they cannot be out of date, and installs them.
if(NOT CMAKE_CROSSCOMPILING)
  set(completions ${CMAKE_BINARY_DIR}/completions)
  file(MAKE_DIRECTORY ${completions})
  add_custom_command(TARGET prism_program POST_BUILD
    COMMAND prism_program completion bash > ${completions}/prism
    COMMAND prism_program completion zsh > ${completions}/_prism
    COMMAND prism_program completion fish > ${completions}/prism.fish)
  install(FILES ${completions}/prism DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${completions}/_prism DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${completions}/prism.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
