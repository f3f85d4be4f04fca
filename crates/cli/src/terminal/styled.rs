//! Formats coloured lines that fit the terminal.
//!
//! Separate because the content is untrusted. A line consists of parts; [`text`] escapes each part
//! before this module adds colours and line ends. In a pipe, lines are never folded, and have
//! colours only with `--color always`.

use std::ffi::OsStr;
use std::io::IsTerminal as _;

use clap::ColorChoice;
use console::Term;

use crate::terminal::text;

/// The space between two parts of a line.
const GAP: &str = "  ";
/// The indentation of the second and later lines of a folded line, which aligns them with the text
/// after the time.
const INDENT_CHARS: usize = 15;
/// The minimum width at which lines are folded here. A narrower terminal must fold lines itself.
const WIDTH_MIN: usize = 40;

/// The option that turns colours on or off.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct ColorArgs {
    /// When to use colours; auto means on a terminal, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    color: ColorChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Dim,
    Name,
    Good,
    /// A failed attempt or request that will be retried.
    Waiting,
    Bad,
}

impl Style {
    /// Returns the parameter of the terminal sequence "select graphic rendition" (ECMA-48,
    /// 8.3.117).
    const fn rendition(self) -> Option<u8> {
        match self {
            Self::Plain => None,
            Self::Dim => Some(2),
            Self::Name => Some(1),
            Self::Good => Some(32),
            Self::Waiting => Some(33),
            Self::Bad => Some(31),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    style: Style,
    text: String,
}

impl Part {
    /// Creates a part of a line, with invisible characters escaped.
    pub(crate) fn new(style: Style, text: impl AsRef<str>) -> Self {
        Self { style, text: text::line(text.as_ref()) }
    }
}

/// Joins parts on one line, without colours.
pub(crate) fn plain(parts: &[Part]) -> String {
    Screen::PLAIN.line(parts).0
}

/// Text that is safe to write: untrusted parts are escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rendered(String);

impl Rendered {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Escapes a text of one or more lines, and appends it after a line end.
    pub(crate) fn and_then(mut self, text: &str) -> Self {
        self.0.push('\n');
        self.0.push_str(&text::plain(text));
        self
    }
}

/// The properties of the output that determine the format of a line: colours and width.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    has_color: bool,
    /// The width of the terminal in characters; `None` in a pipe or a file.
    width: Option<usize>,
}

impl Screen {
    /// A screen without colours and without a width, as for a pipe.
    pub(crate) const PLAIN: Self = Self { has_color: false, width: None };

    /// Determines the colours and the width of standard output.
    pub(crate) fn stdout(arguments: ColorArgs) -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        let (no_color, term) = (std::env::var_os("NO_COLOR"), std::env::var_os("TERM"));
        let has_color =
            is_colored(arguments.color, is_terminal, no_color.as_deref(), term.as_deref());
        let size = if is_terminal { Term::stdout().size_checked() } else { None };
        Self { has_color, width: size.map(|(_, columns)| usize::from(columns)) }
    }

    /// Formats parts as a line without a line end. Folds the line if it does not fit the terminal.
    pub(crate) fn line(self, parts: &[Part]) -> Rendered {
        let width = self.width.filter(|width| *width >= WIDTH_MIN).unwrap_or(usize::MAX);
        let (mut line, mut at) = (String::new(), 0_usize);
        for Part { style, text } in parts.iter().filter(|part| !part.text.is_empty()) {
            let chars = text.chars().count();
            if at > 0 && at.saturating_add(GAP.len() + chars) > width {
                fold(&mut line, &mut at);
            } else if at > 0 {
                line.push_str(GAP);
                at += GAP.len();
            }
            let mut rest = text.chars();
            loop {
                let piece: String = rest.by_ref().take(width.saturating_sub(at).max(1)).collect();
                at += piece.chars().count();
                self.paint(&mut line, *style, &piece);
                if rest.as_str().is_empty() {
                    break;
                }
                fold(&mut line, &mut at);
            }
        }
        Rendered(line)
    }

    fn paint(self, line: &mut String, style: Style, text: &str) {
        match style.rendition().filter(|_| self.has_color) {
            Some(number) => line.push_str(&format!("\x1b[{number}m{text}\x1b[0m")),
            None => line.push_str(text),
        }
    }
}

fn fold(line: &mut String, at: &mut usize) {
    line.push('\n');
    line.push_str(&" ".repeat(INDENT_CHARS));
    *at = INDENT_CHARS;
}

/// Returns true if output is coloured, according to the option, <https://no-color.org> and the
/// terminal.
fn is_colored(
    choice: ColorChoice,
    is_terminal: bool,
    no_color: Option<&OsStr>,
    term: Option<&OsStr>,
) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            let is_off = no_color.is_some_and(|value| !value.is_empty());
            is_terminal && !is_off && term.is_none_or(|term| term != "dumb")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(texts: &[(Style, &str)]) -> Vec<Part> {
        texts.iter().map(|(style, text)| Part::new(*style, text)).collect()
    }

    #[test]
    fn a_line_is_folded_between_its_parts_and_long_parts_within() {
        let screen = Screen { has_color: false, width: Some(40) };
        let name = "n".repeat(20);
        let line = parts(&[
            (Style::Dim, "13:03:02.123Z"),
            (Style::Name, &name),
            (Style::Plain, ""),
            (Style::Bad, "503 Service Unavailable"),
            (Style::Dim, &"x".repeat(60)),
        ]);
        let shown = screen.line(&line);
        assert!(shown.as_str().lines().all(|line| line.chars().count() <= 40), "{shown:?}");
        let indent = " ".repeat(INDENT_CHARS);
        assert!(shown.as_str().contains(&format!("{name}\n{indent}503 Service")), "{shown:?}");
        let unfolded = shown.as_str().replace(&format!("\n{indent}"), "");
        assert_eq!(unfolded.matches('x').count(), 60);
        let text = plain(&line);
        assert_eq!((text.lines().count(), text.matches("  ").count()), (1, 3), "{text}");
    }

    #[test]
    fn colours_surround_text_that_is_harmless() {
        let screen = Screen { has_color: true, width: None };
        let line = parts(&[(Style::Bad, "a\x1b[2Jb\nc"), (Style::Plain, "d")]);
        assert_eq!(screen.line(&line).as_str(), "\x1b[31ma\u{fffd}[2Jb c\x1b[0m  d");
        assert_eq!(plain(&line), "a\u{fffd}[2Jb c  d");
    }

    #[test]
    fn colours_are_for_terminals_unless_a_person_says_otherwise() {
        let colored = |choice, is_terminal, no_color: Option<&str>, term: Option<&str>| {
            is_colored(choice, is_terminal, no_color.map(OsStr::new), term.map(OsStr::new))
        };
        assert!(colored(ColorChoice::Auto, true, None, Some("xterm")));
        assert!(colored(ColorChoice::Auto, true, Some(""), None));
        assert!(!colored(ColorChoice::Auto, true, Some("1"), None));
        assert!(!colored(ColorChoice::Auto, true, None, Some("dumb")));
        assert!(!colored(ColorChoice::Auto, false, None, None));
        assert!(colored(ColorChoice::Always, false, Some("1"), Some("dumb")));
        assert!(!colored(ColorChoice::Never, true, None, None));
    }
}
