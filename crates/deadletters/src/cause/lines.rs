//! Splits texts that list several errors: one per line, in a JSON list, or in sentences of AWS and
//! Joi.
//!
//! Separate because such texts occur both in JSON and alone. Lines that have nothing in common are
//! not a list; the cause is then in the first line. Pure.

use serde_json::Value;

use super::problem::Problem;
use super::shapes;

/// The characters with which list items begin.
const BULLETS: [&str; 4] = ["- ", "* ", "• ", "· "];

/// Returns one problem for each list item, if the only text of the problem is a list. Otherwise,
/// returns the problem unchanged.
pub(super) fn split(problem: Problem) -> Vec<Problem> {
    let [text] = problem.texts.as_slice() else { return vec![problem] };
    if let Some(found) = of_json(text).or_else(|| of_aws(text)).or_else(|| of_joi(text)) {
        return found;
    }
    let Some(listed) = listed(text) else { return vec![problem] };
    let line_problem = |line: &str| match of_validator(line) {
        Some(found) => found,
        None => Problem { texts: vec![line.to_owned()], ..problem.clone() },
    };
    listed.into_iter().map(line_problem).collect()
}

/// Returns the items of a list, without a heading that ends in a colon. All items must begin with a
/// bullet, or with the same label.
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

/// Returns the bullet with which an item begins, or its first word if that ends in a colon: `Key:`.
fn label(line: &str) -> Option<&str> {
    let bullet = BULLETS.iter().find(|bullet| line.starts_with(**bullet)).copied();
    let word = || line.split(' ').next().filter(|word| word.ends_with(':'));
    bullet.or_else(word)
}

fn without_bullet(line: &str) -> &str {
    BULLETS.iter().find_map(|bullet| line.strip_prefix(bullet)).unwrap_or(line)
}

/// Reads a line of Go's validator: `Key: 'Order.Email' Error:Field validation for 'Email' failed on
/// the 'email' tag`.
fn of_validator(line: &str) -> Option<Problem> {
    let (field, rest) =
        line.strip_prefix("Key: '")?.split_once("' Error:Field validation for '")?;
    let (_, failed) = rest.split_once("' ")?;
    Some(Problem { field: vec![field.to_owned()], ..Problem::text(failed) })
}

/// Reads a JSON list at the end of a text, as HubSpot and Zod write it: `Property values were not
/// valid: [{"message": …}]`. Each error must name a field; otherwise a copy of the sent event might
/// be mistaken for a list of errors.
fn of_json(text: &str) -> Option<Vec<Problem>> {
    let (before, list) = text.split_at(text.find("[{")?);
    let value: Value = serde_json::from_str(list).ok()?;
    let found = shapes::problems(&value);
    let is_list = !found.is_empty() && found.iter().all(|problem| !problem.field.is_empty());
    let general = before.trim_end_matches([' ', ':']);
    let with_general = |mut problem: Problem| {
        problem.texts.insert(0, general.to_owned());
        problem
    };
    is_list.then(|| found.into_iter().map(with_general).collect())
}

/// Reads the errors of AWS: `2 validation errors detected: Value '' at 'key' failed to satisfy
/// constraint: Member must …; Value …`.
fn of_aws(text: &str) -> Option<Vec<Problem>> {
    let (count, rest) = text.split_once(" validation error")?;
    count.parse::<u16>().ok()?;
    let (_, listed) = rest.split_once(" detected: ")?;
    let problem = |error: &str| {
        let (value, message) = error.split_once(" failed to satisfy constraint: ")?;
        let field = value.rsplit_once("at '")?.1.trim_end_matches('\'').to_owned();
        Some(Problem { field: vec![field], ..Problem::text(message) })
    };
    listed.split("; Value ").map(problem).collect()
}

/// Reads the errors of Joi, each of which begins with a field: `"lines[0].price" must be positive.
/// "lines[6].price" must be positive`.
fn of_joi(text: &str) -> Option<Vec<Problem>> {
    let rest = text.strip_prefix('"').filter(|rest| rest.contains(". \""))?;
    Some(rest.split(". \"").map(|error| Problem::text(&format!("\"{error}"))).collect())
}
