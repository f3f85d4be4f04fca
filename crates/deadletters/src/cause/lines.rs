//! Texts of several lines that list an error on each.
//!
//! Separate because such a text occurs in JSON as well as alone. A text whose lines have nothing in common is no list; its first line
//! has the cause. Pure.

use super::problem::Problem;

/// The marks of list items.
const BULLETS: [&str; 4] = ["- ", "* ", "• ", "· "];

/// The problems that the only text of a problem lists; the problem itself if it lists none.
pub(super) fn split(problem: Problem) -> Vec<Problem> {
    let [text] = problem.texts.as_slice() else { return vec![problem] };
    let Some(listed) = listed(text) else { return vec![problem] };
    let of = |line: &str| match of_validator(line) {
        Some(found) => found,
        None => Problem { texts: vec![line.to_owned()], ..problem.clone() },
    };
    listed.into_iter().map(of).collect()
}

/// The lines of a list, without a line before them that ends in a colon. All items begin with a bullet, or with the same label.
fn listed(text: &str) -> Option<Vec<&str>> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let items = match lines.split_first() {
        Some((head, items)) if head.ends_with(':') && !items.is_empty() => items,
        Some(_) | None => lines.as_slice(),
    };
    let begin = label(items.first()?)?;
    let is_list = items.iter().all(|line| label(line) == Some(begin));
    let is_several = lines.len() > 1 || of_validator(items.first()?).is_some();
    (is_list && is_several).then(|| items.iter().map(|line| without_bullet(line)).collect())
}

/// The bullet of an item, or the word with a colon that begins it: `Key:`.
fn label(line: &str) -> Option<&str> {
    let bullet = BULLETS.iter().find(|bullet| line.starts_with(**bullet)).copied();
    let word = || line.split(' ').next().filter(|word| word.ends_with(':'));
    bullet.or_else(word)
}

fn without_bullet(line: &str) -> &str {
    BULLETS.iter().find_map(|bullet| line.strip_prefix(bullet)).unwrap_or(line)
}

/// A line of Go's validator: `Key: 'Order.Email' Error:Field validation for 'Email' failed on the 'email' tag`.
fn of_validator(line: &str) -> Option<Problem> {
    let (field, rest) =
        line.strip_prefix("Key: '")?.split_once("' Error:Field validation for '")?;
    let (_, failed) = rest.split_once("' ")?;
    Some(Problem { field: vec![field.to_owned()], ..Problem::text(failed) })
}
