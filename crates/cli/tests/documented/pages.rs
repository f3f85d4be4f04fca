//! The pages of the documentation, as blocks of code, headings and links.
//!
//! This module is separate because three test binaries use it: the program itself parses the
//! commands, `--test sessions` runs them, and `--test documented` follows the links. It supports
//! only the Markdown of these pages: fences of three backquotes, headings with `#`, links without
//! line breaks.

use std::fs;
use std::path::{Path, PathBuf};

/// A page of the documentation, parsed.
#[derive(Debug)]
pub(crate) struct Page {
    /// The path below the root of the repository.
    pub(crate) name: String,
    /// The blocks of code, in order.
    pub(crate) blocks: Vec<Block>,
    /// The anchors of the headings.
    pub(crate) anchors: Vec<String>,
    /// The targets of the links and pictures.
    pub(crate) links: Vec<Link>,
}

/// A block of code between fences.
#[derive(Debug)]
pub(crate) struct Block {
    /// The line of the opening fence.
    pub(crate) line: usize,
    /// The words after the fence: the language, then the class of the block.
    pub(crate) words: Vec<String>,
    /// The text, without the indentation of the fence.
    pub(crate) text: String,
}

impl Block {
    /// Returns true if these are the words after the fence.
    pub(crate) fn is(&self, words: &str) -> bool {
        self.words.join(" ") == words
    }

    /// Returns the commands with their line numbers. Continued lines are joined.
    pub(crate) fn commands(&self) -> Vec<(usize, String)> {
        let (mut found, mut joined) = (Vec::new(), String::new());
        for (number, line) in (self.line + 1..).zip(self.text.lines()) {
            let continued = line.trim_end().strip_suffix('\\');
            joined.push_str(continued.unwrap_or(line));
            if continued.is_none() {
                found.push((number, std::mem::take(&mut joined).trim().to_owned()));
            }
        }
        found.retain(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        found
    }
}

/// A link of a page.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) line: usize,
    pub(crate) target: String,
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The manual: the README and all pages below `docs`.
pub(crate) fn manual() -> Vec<Page> {
    let mut names = vec!["README.md".to_owned()];
    collect("docs", &mut names);
    names.iter().map(|name| Page::read(name)).collect()
}

/// Adds the pages below a folder, sorted by name.
fn collect(folder: &str, names: &mut Vec<String>) {
    let entries = fs::read_dir(root().join(folder)).expect("there is such a folder");
    let mut found: Vec<(String, bool)> = entries
        .map(|entry| {
            let entry = entry.expect("a folder can be read");
            let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
            (name, entry.path().is_dir())
        })
        .collect();
    found.sort();
    for (name, is_folder) in found {
        if is_folder {
            collect(&name, names);
        } else if Path::new(&name).extension().is_some_and(|extension| extension == "md") {
            names.push(name);
        }
    }
}

impl Page {
    /// Reads the page with this path below the root.
    pub(crate) fn read(name: &str) -> Self {
        let text =
            fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self::parse(name, &text)
    }

    /// Parses a page with this text.
    pub(crate) fn parse(name: &str, text: &str) -> Self {
        let mut page = Self {
            name: name.to_owned(),
            blocks: Vec::new(),
            anchors: Vec::new(),
            links: Vec::new(),
        };
        let mut open: Option<(usize, Block)> = None;
        for (number, line) in (1..).zip(text.lines()) {
            let fence = line.trim_start().strip_prefix("```");
            match (&mut open, fence) {
                (Some(_), Some("")) => page.blocks.extend(open.take().map(|(_, block)| block)),
                (Some((indentation, block)), _) => {
                    block.text.push_str(line.get(*indentation..).unwrap_or(line.trim_start()));
                    block.text.push('\n');
                }
                (None, Some(words)) => {
                    let words = words.split_whitespace().map(str::to_owned).collect();
                    let indentation = line.len() - line.trim_start().len();
                    let block = Block { line: number, words, text: String::new() };
                    open = Some((indentation, block));
                }
                (None, None) => {
                    if let Some(heading) = heading(line) {
                        page.add_anchor(heading);
                    }
                    page.links.extend(
                        targets(line).into_iter().map(|target| Link { line: number, target }),
                    );
                }
            }
        }
        assert!(open.is_none(), "{name}: a block of code has no end");
        page
    }

    /// Adds the anchor of a heading. A repeated name gets the suffix `-1` and so on, as on GitHub.
    fn add_anchor(&mut self, heading: &str) {
        let name = anchor(heading);
        let earlier = self
            .anchors
            .iter()
            .filter(|other| **other == name || other.starts_with(&format!("{name}-")))
            .count();
        self.anchors.push(if earlier == 0 || !self.anchors.contains(&name) {
            name
        } else {
            format!("{name}-{earlier}")
        });
    }
}

/// Returns the text of a heading line.
fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    (text.len() < line.len()).then(|| text.strip_prefix(' ')).flatten()
}

/// Returns the anchor that GitHub gives a heading: small letters, `-` for spaces, no punctuation.
fn anchor(heading: &str) -> String {
    let mut shown = String::new();
    let mut rest = heading;
    // The anchor contains only the text of a link.
    while let Some((before, (text, after))) = rest.split_once('[').and_then(|(before, after)| {
        let (text, after) = after.split_once("](")?;
        Some((before, (text, after.split_once(')')?.1)))
    }) {
        shown.extend([before, text]);
        rest = after;
    }
    shown.push_str(rest);
    shown
        .trim()
        .to_lowercase()
        .chars()
        .filter(|character| character.is_alphanumeric() || matches!(character, ' ' | '-' | '_'))
        .map(|character| if character == ' ' { '-' } else { character })
        .collect()
}

/// Returns the targets of a line's links outside of code.
fn targets(line: &str) -> Vec<String> {
    let outside: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let parts = outside.split("](").skip(1);
    parts.filter_map(|part| part.split_once(')')).map(|(target, _)| target.to_owned()).collect()
}

#[test]
fn a_page_is_divided_into_blocks_anchors_and_links() {
    let text = "# The [`a`](b.md) page, v1.0\n## Same\n## Same\n[x](y.md#z) `[no](link)` ![p](q.png)\n  \
                ```sh aws\n  lastmile a \\\n    b\n  # remark\n  ```\n";
    let page = Page::parse("page.md", text);
    assert_eq!(page.anchors, ["the-a-page-v10", "same", "same-1"]);
    let links: Vec<&str> = page.links.iter().map(|link| link.target.as_str()).collect();
    assert_eq!(links, ["b.md", "y.md#z", "q.png"]);
    assert!(page.blocks[0].is("sh aws"));
    assert_eq!(page.blocks[0].commands(), [(7, "lastmile a   b".to_owned())]);
}
