#compdef jostle
# completion of jostle for zsh
_jostle() {
  local -a verbs options ids
  verbs=(
@VERBS@
  )
  if (( CURRENT == 2 )); then
    _describe 'verb' verbs
    return
  fi
  case "$words[2]" in
@OPTIONS@
  esac
  if [[ "$words[CURRENT]" == -* ]]; then
    compadd -- $options
    return
  fi
  [[ "$words[2]" == set ]] && compadd -S '' -- @KEYS@
  case "$words[2]" in
    @TAKE_IDS@) ids=(last all ${(f)"$(@IDS@)"}); compadd -- $ids ;;
    *) _files ;;
  esac
}
if [ "$funcstack[1]" = "_jostle" ]; then _jostle "$@"; else compdef _jostle jostle; fi
