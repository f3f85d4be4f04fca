//! Tests that the program accepts every `lastmile …` command in the documentation. The test parses
//! each command, which also checks values, required options and conflicts. It executes none.

use clap::Parser as _;

use crate::Arguments;

#[path = "../tests/documented/pages.rs"]
#[expect(dead_code, reason = "links and files are for the tests that run the pages")]
mod pages;

/// Splits a command as a shell would, up to a comment, a pipe or a redirection.
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
            (None, '|' | '>' | '<' | '&' | ';' | ')') => break,
            (Some(_) | None, _) => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words.into_iter().map(|word| filled(&word)).collect()
}

/// Replaces each variable in a word with a value: a URL if the name of the variable ends in `url`,
/// otherwise `value`. The placeholder `URL` becomes a URL too.
fn filled(word: &str) -> String {
    if word == "URL" {
        return "http://example.com/".to_owned();
    }
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

/// Parses a command line. Returns the error message if it is invalid.
fn refusal(line: &str) -> Option<String> {
    Arguments::try_parse_from(words(line)).err().map(|error| error.to_string())
}

/// Returns the rest of a line from its `lastmile` command on. The command may follow a pipe or
/// `$(`. Returns `None` if the line runs no such command.
fn call(line: &str) -> Option<&str> {
    let start = line.find("lastmile ")?;
    let before = line.split_at(start).0.trim_end();
    let begins = before.is_empty() || before.ends_with(['|', '(', ';', '&']);
    begins.then(|| line.split_at(start).1)
}

#[test]
fn every_documented_command_is_accepted() {
    let (mut rejected, mut count) = (Vec::new(), 0);
    for page in pages::manual() {
        let shell =
            page.blocks.iter().filter(|block| block.words.first().is_some_and(|word| word == "sh"));
        for (number, line) in shell.flat_map(pages::Block::commands) {
            let Some(call) = call(&line) else { continue };
            count += 1;
            rejected
                .extend(refusal(call).map(|why| format!("{}:{number}: {line}\n{why}", page.name)));
        }
    }
    assert!(count > 60, "only {count} commands were found");
    assert!(rejected.is_empty(), "{}", rejected.join("\n"));
}

#[test]
fn what_the_program_does_not_accept_is_rejected() {
    for line in [
        "lastmile deadletters lists",
        "lastmile deadletters list --count 3",
        "lastmile deadletters list --limit many # comment",
        "lastmile replay --yes",
        "lastmile publish --topic shop/orders",
        "lastmile publish --to s3://config/subscriptions/ --stack NAME event.json",
    ] {
        assert!(refusal(line).is_some(), "{line}");
    }
    assert_eq!(refusal("lastmile deadletters list --limit 3 | wc -l"), None);
    assert_eq!(
        words("lastmile a 'b c' \"$QueueUrl/d\" e=$X # comment"),
        ["lastmile", "a", "b c", "http://127.0.0.1:4566/000000000000/queue/d", "e=value"]
    );
    assert_eq!(call("id=$(lastmile deadletters list)"), Some("lastmile deadletters list)"));
    assert_eq!(call("echo lastmile demo"), None);
}

#[test]
fn every_command_of_the_sample_workflow_is_accepted() {
    let path = pages::root().join("examples/gitops/subscriptions.yml");
    let text = std::fs::read_to_string(path).expect("the sample is there");
    let run =
        |line: &str| line.trim_start().strip_prefix("- run: ").and_then(call).map(str::to_owned);
    let commands: Vec<String> = text.lines().filter_map(run).collect();
    assert_eq!(commands.len(), 2, "{commands:#?}");
    let rejected: Vec<String> = commands.iter().filter_map(|line| refusal(line)).collect();
    assert!(rejected.is_empty(), "{}", rejected.join("\n"));
}
