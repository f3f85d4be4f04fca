//! Compares the generated files of the tree with what generates them; `--write` writes them.
//!
//! `scripts/generate` runs this with `--write`. This is a test target without a harness, for two
//! reasons: `cargo test` runs the comparison, and cargo builds `lastmile`, whose output is part of
//! two files. A generator is a function from the current text of a file to the new one. It keeps
//! the parts that are written by hand.

mod commands;
mod configuration;
#[path = "../cli/cost/estimates.rs"]
mod estimates;
mod scale;
mod schema;
mod schema_file;
mod template;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

type Generator = fn(&str) -> String;

/// Each file, and what generates it.
const FILES: [(&str, Generator); 5] = [
    ("schemas/native.schema.json", schema_file::page),
    ("docs/reference/commands.md", commands::page),
    ("docs/reference/fields.md", configuration::fields_page),
    ("docs/reference/template.md", configuration::template_page),
    ("docs/reference/scale.md", scale::page),
];

fn main() -> ExitCode {
    let writes = std::env::args().any(|argument| argument == "--write");
    let mut outdated = 0;
    for (name, generate) in FILES {
        let current = file(name);
        let generated = generate(&current);
        if generated == current {
            println!("{name}: as generated");
        } else if writes {
            fs::write(root().join(name), generated).expect("a file of the tree can be written");
            println!("{name}: written");
        } else {
            let (line, old, new) = difference(&current, &generated);
            eprintln!("{name}:{line}: out of date; scripts/generate writes it\n- {old}\n+ {new}");
            outdated += 1;
        }
    }
    // Counted by `tests/run`, as the tests of other targets are.
    let result = if outdated == 0 { "ok" } else { "FAILED" };
    println!(
        "test result: {result}. {} passed; {outdated} failed; 0 ignored",
        FILES.len() - outdated
    );
    ExitCode::from(u8::from(outdated > 0))
}

/// The first line that differs: its number, and both texts.
fn difference<'a>(old: &'a str, new: &'a str) -> (usize, &'a str, &'a str) {
    let same = old.lines().zip(new.lines()).take_while(|(old, new)| old == new).count();
    let line = |text: &'a str| text.lines().nth(same).unwrap_or_default();
    (same + 1, line(old), line(new))
}

/// The folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file of the repository.
fn file(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The page with these rows in its table of this name, between `<!-- NAME -->` and `<!-- /NAME -->`.
fn with_table(page: &str, name: &str, head: &str, rows: &[String]) -> String {
    let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->\n"));
    let (before, rest) =
        page.split_once(&open).unwrap_or_else(|| panic!("the page has no table {name}"));
    let (_, after) = rest.split_once(&close).unwrap_or_else(|| panic!("{name} has no end"));
    let rule = "|---".repeat(head.matches('|').count() - 1);
    format!("{before}{open}{head}\n{rule}|\n{}\n{close}{after}", rows.join("\n"))
}
