//! The end of `docs/reference/commands.md`: the help of every command, as the program prints it.

use std::process::{Command, Stdio};

/// The help of the commands follows this line.
const MARK: &str =
    "<!-- From here on generated: the help of every command, by scripts/generate. -->\n";

/// The page with the help of every command.
pub(crate) fn page(current: &str) -> String {
    let (before, _) = current.split_once(MARK).expect("docs/reference/commands.md has the mark");
    let mut page = format!("{before}{MARK}");
    add("lastmile", &mut page);
    page
}

/// Adds the help of a command and of those below it.
fn add(name: &str, page: &mut String) {
    let help = help(name);
    page.push_str(&format!("\n### {name}\n```text\n{help}\n```\n"));
    let (_, commands) = help.split_once("\nCommands:\n").unwrap_or_default();
    for line in commands.lines().take_while(|line| !line.is_empty()) {
        // A description that goes on in the next line is indented further.
        let command = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '));
        let command = command.and_then(|rest| rest.split(' ').next());
        if let Some(command) = command.filter(|command| *command != "help") {
            add(&format!("{name} {command}"), page);
        }
    }
}

/// The long help of a command, as wide as an ordinary terminal.
fn help(name: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.args(name.split(' ').skip(1)).arg("--help").env("COLUMNS", "80").stdin(Stdio::null());
    let output = command.output().expect("the program runs");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let help = String::from_utf8(output.stdout).expect("help is text");
    help.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
