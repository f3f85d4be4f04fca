//! Formats tables for people: aligned columns without lines, as wide as the terminal.
//!
//! Separate because the width of a table depends on the output. In a pipe or a file, a row is
//! always one line, and its columns are separated by at least two spaces, so that tools can split
//! them.
//!
//! Promises: the columns and their order do not depend on the terminal. Untrusted text never moves
//! the cursor.

use std::fmt;

use comfy_table::{CellAlignment, ContentArrangement, presets};
use console::Term;

use super::plain;

/// The number of spaces between two columns.
const GAP: u16 = 2;

/// The default width, if neither a terminal nor [`COLUMNS`] sets one.
const WIDTH: usize = 80;

/// The POSIX environment variable for the width of the output.
const COLUMNS: &str = "COLUMNS";

/// Returns the width of the terminal in characters. In a pipe or a file, returns the value of
/// `COLUMNS`, or 80.
pub(crate) fn width() -> usize {
    let terminal = Term::stdout().size_checked().map(|(_, width)| width.into());
    terminal.or_else(|| columns(std::env::var(COLUMNS).ok()?.as_str())).unwrap_or(WIDTH)
}

/// Parses a width in characters; `None` for 0 and for invalid text.
fn columns(text: &str) -> Option<usize> {
    text.trim().parse().ok().filter(|columns| *columns > 0)
}

/// A table that escapes its cells with [`plain`].
#[derive(Debug)]
pub(crate) struct Table {
    table: comfy_table::Table,
    /// The width of the terminal, in characters; `None` in a pipe or a file.
    width: Option<u16>,
}

/// Creates a table with these columns, for standard output.
pub(crate) fn table(columns: &[&str]) -> Table {
    table_of_width(columns, Term::stdout().size_checked().map(|(_, width)| width))
}

fn table_of_width(columns: &[&str], width: Option<u16>) -> Table {
    let mut table = comfy_table::Table::new();
    table.load_style(presets::NOTHING).set_header(columns);
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, GAP));
    }
    Table { table, width }
}

impl Table {
    /// Right-aligns the columns with these indexes, for numbers.
    pub(crate) fn align_right(&mut self, columns: &[usize]) {
        for column in columns {
            if let Some(column) = self.table.column_mut(*column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }

    /// Adds a row. A cell may have several lines; in a pipe, commas join these lines.
    pub(crate) fn add_row(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        let is_wrapped = self.width.is_some();
        let shown = |cell: &str| {
            let cell = plain(cell);
            if is_wrapped { cell } else { cell.replace('\n', ", ") }
        };
        self.table.add_row(cells.into_iter().map(|cell| shown(cell.as_ref())));
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> =
            self.table.lines().map(|line| line.trim_end().to_owned()).collect();
        f.write_str(&lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "https://billing.example.com/events/of/the/shop/that/has/a/long/address";

    fn shown(width: Option<u16>) -> String {
        let mut table = table_of_width(&["name", "address", "number"], width);
        table.align_right(&[2]);
        table.add_row(["a\u{202e}b", "x\ny", "7"]);
        table.add_row(["abcdef", LONG, "1,000"]);
        table.to_string()
    }

    #[test]
    fn in_a_pipe_a_row_is_one_line_of_aligned_columns_without_a_frame() {
        let text = shown(None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(text.chars().all(|c| !('\u{2500}'..='\u{257f}').contains(&c)), "{text}");
        let at = lines[0].find("address").expect("the column is there");
        assert_eq!(lines[2].find("https"), Some(at), "{text}");
        assert_eq!(lines[1].chars().position(|c| c == 'x'), Some(at), "{text}");
        let cells = lines[1].split("  ").map(str::trim).filter(|cell| !cell.is_empty());
        assert_eq!(cells.collect::<Vec<_>>(), ["a\u{fffd}b", "x, y", "7"]);
        assert_eq!(lines[1].chars().count(), lines[2].chars().count(), "numbers end together");
        assert!(lines[2].ends_with("  1,000"), "{text}");
    }

    #[test]
    fn on_a_terminal_no_line_is_wider_than_it() {
        for width in [40, 60, 80, 120] {
            let text = shown(Some(width));
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.is_some_and(|widest| widest <= usize::from(width)), "{width}:\n{text}");
        }
        assert!(shown(Some(120)).contains(LONG));
    }
}
