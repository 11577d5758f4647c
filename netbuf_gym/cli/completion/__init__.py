"""`netbuf-gym completion`: prints a shell script that completes commands, options, groups, keys and names."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

HELP = "print a script that completes commands, options, keys and names in bash, zsh or fish"
EPILOG = """put into the shell's start-up file:
  bash  eval "$(netbuf-gym completion bash)"      ~/.bashrc
  zsh   eval "$(netbuf-gym completion zsh)"       ~/.zshrc
  fish  netbuf-gym completion fish | source       ~/.config/fish/config.fish

TAB then answers within some hundredths of a second, from a table in ~/.cache/netbuf-gym that follows the package.
"""
ANSWER = Path(__file__).with_name("answer.py")
"""Program that the scripts run at each press of TAB."""

BASH = """\
# completion of netbuf-gym for bash:  eval "$(netbuf-gym completion bash)"
_netbuf_gym() {
    local IFS=$'\\n' line
    if [[ -n ${COMP_LINE-} && ${COMP_POINT-0} -gt 0 ]]; then
        line=${COMP_LINE:0:COMP_POINT}
    else
        IFS=' '
        line="${COMP_WORDS[*]:0:COMP_CWORD+1}"
        line=${line// = /=}
        [[ ${COMP_WORDS[COMP_CWORD]} == = ]] && line="${line% =}="
        IFS=$'\\n'
    fi
    COMPREPLY=($(ASK bash "$line" "$COMP_WORDBREAKS" 2>/dev/null))
    local one
    for one in "${COMPREPLY[@]}"; do
        [[ $one == *[=/.:,[] ]] || return 0
    done
    compopt -o nospace 2>/dev/null
    return 0
}
complete -F _netbuf_gym netbuf-gym
"""

ZSH = """\
#compdef netbuf-gym
# completion of netbuf-gym for zsh:  eval "$(netbuf-gym completion zsh)"
_netbuf_gym() {
    local -a found open closed said_open said_closed
    local line word tab=$'\\t'
    found=("${(@f)$(ASK zsh "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    for line in $found; do
        word=${line%%$tab*}
        [[ $line == *$tab* ]] && line="$word  -- ${line#*$tab}"
        if [[ $word == *[=/.:,\\[] ]]; then
            open+=("$word") said_open+=("$line")
        else
            closed+=("$word") said_closed+=("$line")
        fi
    done
    (( $#open )) && compadd -S '' -l -d said_open -a open
    (( $#closed )) && compadd -l -d said_closed -a closed
}
if [[ ${funcstack[1]-} == _netbuf_gym ]]; then
    _netbuf_gym "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -u }
    compdef _netbuf_gym netbuf-gym
fi
"""

FISH = """\
# completion of netbuf-gym for fish:  netbuf-gym completion fish | source
function __netbuf_gym_ask
    set -l before (commandline -opc)
    set -l word (commandline -ct)
    ASK fish $before[2..-1] "$word" 2>/dev/null
end
complete -c netbuf-gym -f -a '(__netbuf_gym_ask)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def format_script(shell: str) -> str:
    """Return the completion script of a shell, which calls the present Python interpreter."""
    words = [sys.executable, str(ANSWER)]
    quote = _quote_for_fish if shell == "fish" else shlex.quote
    return SCRIPTS[shell].replace("ASK", " ".join(map(quote, words)))


def _quote_for_fish(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "\\'") + "'"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the subcommand's arguments to its parser."""
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", choices=list(SCRIPTS), help="which one")


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    print(format_script(arguments.shell), end="")
    return 0
