//! Reads files of events, and splits their text into JSON documents.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use adapters::error_words::io_words;
use adapters::file_text;
use anyhow::Context as _;
use delivery::event::without_mark;
use serde_json::value::RawValue;

use crate::terminal::text;
use crate::terminal::usage::usage_error;

/// Reads a file of events without its byte order mark. `-` means standard input.
pub(crate) fn text_of(file: &str) -> anyhow::Result<String> {
    let text = match file {
        "-" => standard_input(),
        path => file_text::read(Path::new(path)).map_err(|error| {
            let why = io_words(&error);
            usage_error(format!("{} cannot be read: {why}", text::line(path)))
        }),
    };
    text.map(|text| without_mark(&text).to_owned())
}

/// Reads standard input as text.
fn standard_input() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).context("standard input cannot be read")?;
    file_text::text_of(bytes)
        .map_err(|error| usage_error(format!("standard input cannot be read: {error}")))
}

/// Splits a text into JSON documents, each with the number of its first line. If the text is not a
/// sequence of documents, splits it into lines, so that an invalid line does not affect others.
pub(crate) fn documents(text: &str) -> Vec<(usize, Arc<str>)> {
    let sequence: Result<Vec<&RawValue>, _> =
        serde_json::Deserializer::from_str(text).into_iter().collect();
    if let Ok(sequence) = sequence {
        // A raw value borrows from the text, so its offset is the difference of the two addresses.
        let offset = |document: &RawValue| document.get().as_ptr().addr() - text.as_ptr().addr();
        let (mut counted, mut line) = (0, 1);
        let line_of = |document: &&RawValue| {
            let between = text.bytes().skip(counted).take(offset(document) - counted);
            line += between.filter(|byte| *byte == b'\n').count();
            counted = offset(document);
            line
        };
        let lines: Vec<usize> = sequence.iter().map(line_of).collect();
        let texts = sequence.into_iter().map(|document| document.get().into());
        return lines.into_iter().zip(texts).collect();
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(index, line)| (index + 1, line.trim().into())).collect()
}
