//! `procwright completions`: completions of a shell, made from the definition that
//! the parser is made from.

use std::io::{self, Write};

use clap_complete::{Shell, generate};

use crate::args::{ShellArg, definition};

/// Completion of the command behind `procwright run [OPTIONS]`, `map` and `pipe`, which has completions
/// of its own: clap's for bash would offer our options for it. `OPTIONS` stands for
/// those that take a value.
const BASH: &str = r#"
_procwright_run() {
    local i
    if [[ ${COMP_WORDS[1]} == @(run|map|pipe) ]]; then
        for ((i = 2; i < COMP_CWORD; i++)); do
            case ${COMP_WORDS[i]} in
                --) ((i++)); break ;;
                OPTIONS)
                    # readline takes `=` for a word of its own.
                    [[ ${COMP_WORDS[i + 1]} != "=" ]] || ((i++))
                    ((i++))
                    while [[ ${COMP_WORDS[i + 1]} == "=" ]]; do ((i += 2)); done ;;
                # The name behind --tag=.
                =) ((i++)) ;;
                -*) ;;
                *) break ;;
            esac
        done
        if ((i < COMP_CWORD)) || { ((i == COMP_CWORD)) && [[ $2 != -* ]]; }; then
            COMPREPLY=()
            if declare -F _comp_command_offset >/dev/null; then
                _comp_command_offset "$i"
            elif declare -F _command_offset >/dev/null; then
                _command_offset "$i"
            elif ((i == COMP_CWORD)); then
                mapfile -t COMPREPLY < <(compgen -c -- "$2")
            fi
            return
        fi
    fi
    _procwright "$@"
}
complete -F _procwright_run -o bashdefault -o default procwright
"#;

/// Writes the completions for a shell.
///
/// # Errors
/// Those of the write.
pub(crate) fn write(shell: ShellArg, to: &mut dyn Write) -> io::Result<()> {
    let mut definition = definition();
    let name = "procwright";
    // The generators panic when a write fails, which one to memory never does.
    let mut text = Vec::new();
    let shell = match shell {
        ShellArg::Bash => Shell::Bash,
        ShellArg::Zsh => Shell::Zsh,
        ShellArg::Fish => Shell::Fish,
    };
    generate(shell, &mut definition, name, &mut text);
    if shell == Shell::Bash {
        let all = ["run", "map", "pipe"].map(|name| definition.find_subcommand(name));
        let options = all.into_iter().flatten().flat_map(clap::Command::get_opts);
        let valued = options
            .filter(|option| option.get_action().takes_values() && !option.is_require_equals_set());
        let mut valued: Vec<String> = valued
            .flat_map(|option| {
                let long = option.get_long().map(|long| format!("--{long}"));
                let short = option.get_short_and_visible_aliases().unwrap_or_default();
                let short = short.into_iter().map(|short| format!("-{short}"));
                long.into_iter().chain(short)
            })
            .collect();
        valued.sort();
        valued.dedup();
        text.extend(BASH.replace("OPTIONS", &valued.join("|")).into_bytes());
    }
    to.write_all(&text)
}
