//! Draws dead letters over time as an SVG chart: columns of equal width, stacked by reason. Pure.

use std::collections::BTreeMap;

use deadletters::facts::decided_ms;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS};
use delivery::time::moment::rfc3339;
use maud::{Markup, html};

use crate::console::shell::markup::{line, word};
use crate::console::shell::query::Query;
use crate::terminal::text;

/// The possible widths of a column. The chart uses the smallest width that results in at most
/// [`COLUMNS_MAX`] columns.
const WIDTHS_MS: [u64; 10] = [
    MINUTE_MS,
    5 * MINUTE_MS,
    15 * MINUTE_MS,
    HOUR_MS,
    3 * HOUR_MS,
    6 * HOUR_MS,
    12 * HOUR_MS,
    DAY_MS,
    7 * DAY_MS,
    28 * DAY_MS,
];
/// The maximum number of columns. More columns would be too thin to distinguish.
const COLUMNS_MAX: u64 = 72;
/// The minimum number of columns, so that a single minute does not fill the chart. If necessary,
/// the chart begins before the first dead letter.
const COLUMNS_MIN: u64 = 24;
/// The number of reasons that have their own colour. The other reasons share one colour.
pub(in crate::console) const COLOURS: usize = 6;
/// The height of the chart in SVG units. A column is 10 units wide.
const HEIGHT: f64 = 100.0;
/// The minimum height of a segment in SVG units, so that it remains visible.
const HEIGHT_MIN: f64 = 1.5;

/// Assigns colours to reasons, by their frequency in the whole container. Therefore, filters do not
/// change the colours.
pub(in crate::console) struct Palette(Vec<String>);

impl Palette {
    pub(in crate::console) fn new(reasons: &[(&str, u64)]) -> Self {
        Self(reasons.iter().take(COLOURS).map(|(reason, _)| (*reason).to_owned()).collect())
    }

    /// Returns the CSS class of a reason: `c0`, `c1` …
    pub(in crate::console) fn class(&self, reason: &str) -> String {
        format!("c{}", self.0.iter().position(|listed| listed == reason).unwrap_or(COLOURS))
    }
}

/// A column of the chart: the dead letters of one interval.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Column {
    from_ms: u64,
    /// The number of dead letters with each reason.
    counts: BTreeMap<String, u64>,
}

impl Column {
    fn sum(&self) -> u64 {
        self.counts.values().sum()
    }
}

/// A chart of dead letters over time. Its columns are sorted from the oldest to the newest, without
/// gaps.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::console) struct Chart {
    width_ms: u64,
    columns: Vec<Column>,
}

impl Chart {
    /// Creates the chart of these dead letters; `None` if none has a time.
    pub(in crate::console) fn new<'a>(
        letters: impl Iterator<Item = &'a StoredDeadLetter>,
    ) -> Option<Self> {
        let minute_of = |letter| decided_ms(letter).map(|at_ms| at_ms / MINUTE_MS * MINUTE_MS);
        let letters: Vec<(u64, &str)> = letters
            .filter_map(|letter| Some((minute_of(letter)?, letter.reason.as_str())))
            .collect();
        let minutes = || letters.iter().map(|(minute_ms, _)| *minute_ms);
        let (first_ms, last_ms) = (minutes().min()?, minutes().max()?);
        let columns_of = |width_ms: u64| last_ms / width_ms - first_ms / width_ms + 1;
        let width_ms =
            WIDTHS_MS.into_iter().find(|width_ms| columns_of(*width_ms) <= COLUMNS_MAX).unwrap_or(
                // Invalid times may span decades. The width is then a larger number of whole hours.
                (last_ms - first_ms) / (COLUMNS_MAX - 1) / HOUR_MS * HOUR_MS + HOUR_MS,
            );
        let last = last_ms / width_ms;
        let first = (first_ms / width_ms).min((last + 1).saturating_sub(COLUMNS_MIN));
        let column = |number: u64| Column { from_ms: number * width_ms, counts: BTreeMap::new() };
        let mut columns: Vec<Column> = (first..=last).map(column).collect();
        for (minute_ms, reason) in letters {
            let at = usize::try_from(minute_ms / width_ms - first).unwrap_or(usize::MAX);
            let Some(column) = columns.get_mut(at) else { continue };
            *column.counts.entry(reason.to_owned()).or_default() += 1;
        }
        Some(Self { width_ms, columns })
    }

    fn greatest(&self) -> u64 {
        self.columns.iter().map(Column::sum).max().unwrap_or(0)
    }

    /// Describes the width of a column: `minute`, `hour`, `3 h`, `day`.
    fn width(&self) -> String {
        match self.width_ms {
            MINUTE_MS => "minute".to_owned(),
            HOUR_MS => "hour".to_owned(),
            DAY_MS => "day".to_owned(),
            other => text::duration(other),
        }
    }

    /// Draws the chart with axes, legend and table. `reasons` contains each reason of the shown
    /// dead letters with its count, most frequent first.
    pub(in crate::console) fn draw(
        &self,
        query: &Query,
        palette: &Palette,
        reasons: &[(&str, u64)],
    ) -> Markup {
        let greatest = self.greatest();
        let peak = self
            .columns
            .iter()
            .max_by_key(|column| column.sum())
            .map_or(0, |column| column.from_ms);
        html! {
            figure .chart {
                figcaption { h2 #per { "Per " (self.width()) ", by reason" } }
                div .plot {
                    div .axis aria-hidden="true" {
                        span { (text::grouped(greatest)) }
                        span { (if greatest > 1 { text::grouped(greatest / 2) } else { String::new() }) }
                        span { "0" }
                    }
                    svg viewBox={ "0 0 " (self.columns.len() * 10) " " (HEIGHT) } preserveAspectRatio="none"
                        role="group" aria-labelledby="chart-title chart-desc" {
                        title #chart-title { "Dead letters per " (self.width()) " by reason" }
                        desc #chart-desc {
                            "From " (text::at(Some(self.begin_ms()))) " to " (text::at(Some(self.end_ms())))
                            "; the maximum is " (text::grouped(greatest)) ", from " (text::at(Some(peak)))
                            ". The table below contains the same numbers."
                        }
                        path .grid d={ "M0 " (HEIGHT / 2.0) "H" (self.columns.len() * 10) } {}
                        @for (at, column) in self.columns.iter().enumerate().filter(|(_, column)| column.sum() > 0) {
                            (self.bar(at, column, greatest, query, palette, reasons))
                        }
                    }
                    (self.time_axis())
                }
                ul .legend aria-label="Reasons" {
                    @for (reason, count) in reasons {
                        li { a href=(query.with(&[("reason", reason)])) {
                            (swatch(&palette.class(reason)))
                            span { (line(reason)) } " " b { (text::grouped(*count)) }
                        } }
                    }
                }
                (self.table(query, reasons))
            }
        }
    }

    fn bar(
        &self,
        at: usize,
        column: &Column,
        greatest: u64,
        query: &Query,
        palette: &Palette,
        reasons: &[(&str, u64)],
    ) -> Markup {
        let (scale, mut top) = (HEIGHT / greatest.max(1) as f64, HEIGHT);
        let count = text::dead_letters(column.sum());
        let label = format!("{}: {count}", text::at(Some(column.from_ms)));
        html! {
            // Exclude the link from the tab order, because the table below has the same link.
            a href=(self.link(query, column)) tabindex="-1" {
                title {
                    (label)
                    @for (reason, count) in &column.counts { "\n" (text::grouped(*count)) " " (line(reason)) }
                }
                rect .hit x=(at * 10) y="0" width="10" height=(HEIGHT) {}
                @for (reason, _) in reasons {
                    @if let Some(count) = column.counts.get(*reason) {
                        @let height = (*count as f64 * scale).max(HEIGHT_MIN);
                        @let y = { top -= height; top.max(0.0) };
                        rect class=(palette.class(reason)) x=(at * 10 + 1) width="8"
                            y=(format!("{y:.2}")) height=(format!("{height:.2}")) {}
                    }
                }
            }
        }
    }

    /// Returns the link to the dead letters of a column.
    fn link(&self, query: &Query, column: &Column) -> String {
        let (since, until) = (rfc3339(column.from_ms), rfc3339(self.end_of(column)));
        query.with(&[("since", &whole_seconds(&since)), ("until", &whole_seconds(&until))])
    }

    fn begin_ms(&self) -> u64 {
        self.columns.first().map_or(0, |column| column.from_ms)
    }

    fn end_ms(&self) -> u64 {
        self.columns.last().map_or(0, |column| self.end_of(column))
    }

    fn end_of(&self, column: &Column) -> u64 {
        column.from_ms.saturating_add(self.width_ms)
    }

    /// Renders the times at both ends and in the middle of the chart.
    fn time_axis(&self) -> Markup {
        let (from_ms, until_ms) = (self.begin_ms(), self.end_ms());
        let middle_ms = from_ms + (until_ms - from_ms) / 2 / MINUTE_MS * MINUTE_MS;
        html! { div .hours aria-hidden="true" {
            @for ms in [from_ms, middle_ms, until_ms] { span { (minutes(ms).chars().skip("2026-".len()).collect::<String>()) } }
        } }
    }

    /// Renders the counts of the chart as a table, for screen readers and keyboards.
    fn table(&self, query: &Query, reasons: &[(&str, u64)]) -> Markup {
        html! { details .numbers {
            summary { "Show as a table" }
            div .scroll role="region" tabindex="0" aria-labelledby="per" {
                table {
                    thead {
                        tr {
                            th scope="col" { "From" }
                            @for (reason, _) in reasons { th .number scope="col" { (word(reason)) } }
                            th .number scope="col" { "All" }
                        }
                    }
                    tbody { @for column in self.columns.iter().rev().filter(|column| column.sum() > 0) { tr {
                        th scope="row" {
                            a href=(self.link(query, column)) { (minutes(column.from_ms)) }
                        }
                        @for (reason, _) in reasons {
                            td .number { (text::grouped(column.counts.get(*reason).copied().unwrap_or(0))) }
                        }
                        td .number { b { (text::grouped(column.sum())) } }
                    } } }
                }
            }
        } }
    }
}

/// Renders a small square in the colour of a reason.
pub(in crate::console) fn swatch(class: &str) -> Markup {
    html! {
        svg class={ "swatch " (class) } viewBox="0 0 10 10" aria-hidden="true" focusable="false" {
            rect class=(class) width="10" height="10" rx="2" {}
        }
    }
}

/// Removes the fraction of a second from an RFC 3339 time.
fn whole_seconds(rfc3339: &str) -> String {
    format!("{}Z", text::first_chars(rfc3339, "2026-11-20T07:03:00".len()))
}

/// Formats a time to the minute, such as `2026-11-20 07:03`.
fn minutes(ms: u64) -> String {
    text::first_chars(&text::at(Some(ms)), "2026-11-20 07:03".len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64, reason: &str) -> StoredDeadLetter {
        let key = "a/b/c/2026/11/20/7/00000000-0000-0000-0000-000000000001.json";
        let blob = format!(
            r#"{{"event":{{}},"deadletterProperties":{{"deadletterreasoncode":"{reason}","publishutc":"{}"}}}}"#,
            rfc3339(ms)
        );
        delivery::deadletter::stored::read(key, "", blob.as_bytes()).unwrap()
    }

    #[test]
    fn hours_far_apart_share_columns_and_every_dead_letter_is_in_one() {
        for (apart_ms, width_ms, columns) in [
            (0, MINUTE_MS, 24),
            (71 * MINUTE_MS, MINUTE_MS, 72),
            (72 * MINUTE_MS, 5 * MINUTE_MS, 24),
            (71 * HOUR_MS, HOUR_MS, 72),
            (72 * HOUR_MS, 3 * HOUR_MS, 25),
            (100 * DAY_MS, 7 * DAY_MS, 24),
            (9_000 * DAY_MS, 0, 72),
        ] {
            let first_ms = 1_000 * 28 * DAY_MS;
            let letters =
                [at(first_ms, "A"), at(first_ms + apart_ms, "B"), at(first_ms + apart_ms, "B")];
            let chart = Chart::new(letters.iter()).unwrap();
            assert!(width_ms == 0 || chart.width_ms == width_ms, "{apart_ms}: {}", chart.width_ms);
            assert_eq!(chart.columns.len(), columns, "{apart_ms}");
            assert_eq!(chart.columns.iter().map(Column::sum).sum::<u64>(), 3);
            assert_eq!(chart.greatest(), if apart_ms == 0 { 3 } else { 2 });
        }
        assert_eq!(Chart::new(std::iter::empty()), None);
    }

    #[test]
    fn a_column_ends_where_numbers_end_at_the_latest() {
        let column = |from_ms| Column { from_ms, counts: BTreeMap::from([("A".to_owned(), 1)]) };
        let columns = vec![column(u64::MAX - DAY_MS), column(u64::MAX)];
        let chart = Chart { width_ms: DAY_MS, columns };
        let (query, _) = Query::read(&[], &[]).unwrap();
        let drawn = chart.draw(&query, &Palette::new(&[("A", 2)]), &[("A", 2)]).into_string();
        assert!(drawn.contains("9999-12-30"), "{drawn}");
    }

    #[test]
    fn a_reason_is_made_visible_in_the_title_of_its_bar() {
        let chart = Chart::new([at(HOUR_MS, "Re\u{202e}")].iter()).unwrap();
        let (query, _) = Query::read(&[], &[]).unwrap();
        let reasons = [("Re\u{202e}", 1)];
        let drawn = chart.draw(&query, &Palette::new(&reasons), &reasons).into_string();
        assert!(!drawn.contains('\u{202e}'), "{drawn}");
    }
}
