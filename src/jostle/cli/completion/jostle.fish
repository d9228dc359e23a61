# completion of jostle for fish
complete -c jostle -f
@VERBS@
@OPTIONS@
complete -c jostle -n '__fish_seen_subcommand_from @TAKE_IDS@' -a "last all (@IDS@)"
complete -c jostle -n '__fish_seen_subcommand_from set' -a '@KEYS@'
complete -c jostle -n '__fish_seen_subcommand_from @TAKE_FILES@ add' -F
