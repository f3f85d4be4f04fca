//! Every block of code has a class, so that none is skipped silently.
//!
//! | after the fence | meaning | check |
//! |---|---|---|
//! | `sh` | commands that run as pasted | `--test sessions` runs them |
//! | `sh aws` | commands for a deployment in an account | each `lastmile …` line is parsed |
//! | `sh cargo` | commands that compile a checkout | named files exist; `tests/newcomer` runs the README's |
//! | `text output` | the output of the block before | `--test sessions` compares it |
//! | a language and a file name | a file that the reader saves | `--test sessions` writes it |
//! | another language | a sample | its own tests, if any |

use std::path::Path;

use crate::pages::{self, Block, Page};

/// Languages of samples. Blocks in these languages are not run here.
const SAMPLES: [&str; 10] =
    ["yaml", "toml", "json", "text", "sql", "duckdb", "jq", "python", "js", "ts"];

/// Describes the error in the words after the fence of a block, if there is one.
fn unclassified(page: &Page, block: &Block) -> Option<String> {
    let words: Vec<&str> = block.words.iter().map(String::as_str).collect();
    let known = match words[..] {
        ["sh"] | ["sh", "aws" | "cargo"] | ["text", "output"] => true,
        [language] => SAMPLES.contains(&language),
        [language, file] => SAMPLES.contains(&language) && Path::new(file).extension().is_some(),
        _ => false,
    };
    (!known).then(|| format!("{}:{}: ```{}", page.name, block.line, words.join(" ")))
}

#[test]
fn every_block_of_the_manual_says_what_it_is() {
    let wrong: Vec<String> = pages::manual()
        .iter()
        .flat_map(|page| page.blocks.iter().filter_map(|block| unclassified(page, block)))
        .collect();
    assert!(wrong.is_empty(), "crates/cli/tests/documented/classes.rs:\n{}", wrong.join("\n"));
}

#[test]
fn a_block_of_no_class_is_found() {
    for fence in ["```", "```bash", "```sh AWS", "```sh run fast", "```yaml subscriptions"] {
        let page = Page::parse("page.md", &format!("{fence}\nlastmile demo\n```\n"));
        assert!(unclassified(&page, &page.blocks[0]).is_some(), "{fence}");
    }
}

#[test]
fn commands_of_a_checkout_name_what_exists() {
    let (root, mut missing) = (pages::root(), Vec::new());
    for page in pages::manual() {
        for (number, line) in
            page.blocks.iter().filter(|block| block.is("sh cargo")).flat_map(Block::commands)
        {
            let words: Vec<&str> = line.split(' ').collect();
            let after = |option: &str| {
                words.iter().position(|word| *word == option).and_then(|index| words.get(index + 1))
            };
            let mut needed: Vec<String> = Vec::new();
            needed.extend(after("--path").map(|path| (*path).to_owned()));
            needed.extend(after("--test").map(|test| format!("tests/tests/{test}/main.rs")));
            needed.extend(
                words
                    .first()
                    .filter(|word| word.contains('/') && !word.contains('='))
                    .map(|word| (*word).to_owned()),
            );
            missing.extend(
                needed
                    .into_iter()
                    .filter(|needed| !root.join(needed).exists())
                    .map(|needed| format!("{}:{number}: {needed}", page.name)),
            );
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn what_is_installed_has_the_dependencies_that_were_tested() {
    let pages = pages::manual();
    let commands = pages.iter().flat_map(|page| page.blocks.iter().flat_map(Block::commands));
    let installs: Vec<String> =
        commands.map(|(_, line)| line).filter(|line| line.starts_with("cargo install ")).collect();
    // Without this option, cargo ignores the lock file and uses the newest versions.
    assert!(
        installs.len() > 1 && installs.iter().all(|line| line.contains(" --locked ")),
        "{installs:?}"
    );
}
