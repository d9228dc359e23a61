# completion of jostle for bash
_jostle() {
  local word="${COMP_WORDS[COMP_CWORD]}" verb="${COMP_WORDS[1]}" options=''
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '@VERBS@ --help --version' -- "$word"))
    return
  fi
  case "$verb" in
@OPTIONS@
  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")); return ;;
  esac
  case "$verb" in
    set) COMPREPLY=($(compgen -W "@KEYS@ last all $(@IDS@)" -- "$word"))
      [[ $COMPREPLY == *= ]] && compopt -o nospace 2>/dev/null ;;
    @TAKE_IDS@) COMPREPLY=($(compgen -W "last all $(@IDS@)" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}
complete -o filenames -F _jostle jostle
