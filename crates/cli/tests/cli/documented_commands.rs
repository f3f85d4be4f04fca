//! The command line accepts every `lastmile …` line of the documentation.
//!
//! Each is run with `--help` appended: the options before it are parsed with their values, and
//! nothing is executed. Conflicts between options and missing options are not checked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A command of a page, with its location.
struct Documented {
    location: String,
    line: String,
}

/// The pages: the README and all of `docs`.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).expect("there are docs");
    let mut pages: Vec<PathBuf> =
        docs.map(|entry| entry.expect("a folder can be read").path()).collect();
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.push(root.join("README.md"));
    pages.sort();
    pages
}

/// The commands of a page: the lines of its `sh` blocks that begin with `lastmile`, continued lines
/// joined.
fn commands(page: &Path) -> Vec<Documented> {
    let text =
        fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let name = page.file_name().expect("a page has a name").to_string_lossy();
    let (mut found, mut inside, mut joined) = (Vec::new(), false, String::new());
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if let Some(language) = line.strip_prefix("```") {
            inside = language == "sh";
            continue;
        }
        joined.push_str(line.trim_end_matches('\\'));
        if inside && line.ends_with('\\') {
            continue;
        }
        let line = std::mem::take(&mut joined);
        if inside && line.starts_with("lastmile ") {
            found.push(Documented { location: format!("{name}:{number}"), line });
        }
    }
    found
}

/// The arguments as a shell would split them, up to a comment, a pipe or a redirection.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in line.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, '#') if word.is_none() => break,
            (None, '|' | '>' | '<' | '&' | ';') => break,
            (Some(_) | None, _) => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words.into_iter().map(|word| filled(&word)).collect()
}

/// A word with its variables replaced by a value: a URL if the name ends in `url`.
fn filled(word: &str) -> String {
    let mut parts = word.split('$');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part
            .find(|character: char| !character.is_alphanumeric() && character != '_')
            .unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        let url = name.to_lowercase().ends_with("url");
        filled.push_str(if url { "http://127.0.0.1:4566/000000000000/queue" } else { "value" });
        filled.push_str(rest);
    }
    filled
}

/// The error if the command line rejects it.
fn refusal(arguments: &[String]) -> Option<String> {
    // Pages use URL as a placeholder.
    let placeholder = |word: &String| word == "URL";
    let arguments =
        arguments.iter().map(|word| if placeholder(word) { "http://example.com/" } else { word });
    let done = Command::new(env!("CARGO_BIN_EXE_lastmile")).args(arguments).arg("--help").output();
    let done = done.expect("the program runs");
    (!done.status.success()).then(|| String::from_utf8_lossy(&done.stderr).into_owned())
}

#[test]
fn every_documented_command_is_accepted() {
    let mut invalid = Vec::new();
    let mut count = 0;
    for command in pages().iter().flat_map(|page| commands(page)) {
        let words = words(&command.line);
        count += 1;
        invalid.extend(
            refusal(&words[1..])
                .map(|why| format!("{}: {}\n{why}", command.location, command.line)),
        );
    }
    assert!(count > 30, "only {count} commands were found");
    assert!(invalid.is_empty(), "{}", invalid.join("\n"));
}

#[test]
fn an_unknown_command_or_option_is_rejected() {
    for line in [
        "lastmile deadletters lists",
        "lastmile deadletters list --count 3",
        "lastmile deadletters list --limit many # comment",
        "lastmile replay --yes",
    ] {
        assert!(refusal(&words(line)[1..]).is_some(), "{line}");
    }
    let words = words("lastmile a 'b c' \"$QueueUrl/d\" e=$X # comment");
    assert_eq!(
        words,
        ["lastmile", "a", "b c", "http://127.0.0.1:4566/000000000000/queue/d", "e=value"]
    );
}
