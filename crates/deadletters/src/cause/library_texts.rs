//! Reduces error texts of known libraries to the parts that do not vary. Libraries add the location
//! of the error, the rejected value or an extract of the request.
//!
//! Separate because each rule here is about a sentence of one library. All other rules are about
//! text in general. Pure.

use super::problem::Problem;
use super::template::VALUE;

/// Rewrites an error text of one library, and may extract the field; returns `None` for a text of a
/// different library.
type Rewrite = fn(&str) -> Option<Problem>;

const REWRITES: [Rewrite; 13] = [
    jackson,
    serde,
    go,
    graphql,
    v8,
    sql,
    salesforce,
    picklist,
    elasticsearch,
    firestore,
    envoy,
    php,
    position,
];

/// Text that Jackson puts before the location of an error.
const CHAIN: &str = " (through reference chain: ";

/// Removes the variable parts that libraries add to the texts of a problem.
pub(super) fn without_additions(problem: Problem) -> Problem {
    let mut rewritten = Problem { texts: Vec::new(), ..problem.clone() };
    for text in &problem.texts {
        let Problem { texts, field, .. } = REWRITES
            .iter()
            .find_map(|rewrite| rewrite(text))
            .unwrap_or_else(|| Problem::text(text));
        rewritten.texts.extend(texts.iter().map(|text| short_exceptions(text)));
        if rewritten.field.is_empty() {
            rewritten.field = field;
        }
    }
    rewritten
}

/// Removes the package from the names of exceptions:
/// `com.amazonaws.….ConditionalCheckFailedException` becomes `ConditionalCheckFailedException`.
fn short_exceptions(text: &str) -> String {
    let short = |word: &str| {
        let class = word.trim_end_matches([':', ',', ';']);
        let (package, name) = class.rsplit_once('.').unwrap_or(("", class));
        let is_package = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.';
        let is_exception = name.ends_with("Exception") || name.ends_with("Error");
        let from = if is_exception && package.chars().all(is_package) { name } else { class };
        format!("{from}{}", word.strip_prefix(class).unwrap_or_default())
    };
    text.split(' ').map(short).collect::<Vec<_>>().join(" ")
}

fn with_field(text: String, field: Vec<String>) -> Problem {
    Problem { texts: vec![text], field, ..Problem::default() }
}

/// Reads an error of Jackson. Jackson repeats its message, and may name the field at the end: `…
/// (through reference chain: a.Order["lines"]->java.util.ArrayList[0]->…)`.
fn jackson(text: &str) -> Option<Problem> {
    let is_jackson = text.contains("JSON parse error") || text.contains(CHAIN);
    let (message, chain) = text.split_once(CHAIN).unwrap_or((text, ""));
    let ends = ["; nested exception", ": Failed to deserialize", "\n at [Source"];
    let end = ends.iter().filter_map(|mark| message.find(mark)).min();
    let message = end.and_then(|end| message.get(..end)).unwrap_or(message);
    let member = |step: &str| {
        let (_, inner) = step.split_once('[')?;
        Some(inner.split_once(']')?.0.trim_matches('"').to_owned())
    };
    let field = chain.split("->").filter_map(member).collect();
    is_jackson.then(|| with_field(without_packages(message), field))
}

/// Removes the package from class names in backticks, as in `java.time.LocalDate`.
fn without_packages(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(index, part)| {
        let is_quoted = index % 2 == 1;
        if is_quoted { part.rsplit('.').next().unwrap_or(part) } else { part }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Reads an error of Axum, which puts a fixed sentence before the field and the cause. The cause is
/// written by serde.
fn serde(text: &str) -> Option<Problem> {
    text.strip_prefix("Failed to deserialize the JSON body into the target type: ")
        .map(Problem::text)
}

/// Reads a JSON error of Go, which names the field within its sentence: `json: cannot unmarshal
/// number 1.5 into Go struct field Order.cents of type int64`.
fn go(text: &str) -> Option<Problem> {
    let (before, rest) = text.split_once("json: cannot unmarshal ")?;
    let (value, rest) = rest.split_once(" into Go struct field ")?;
    let (field, of_type) = rest.split_once(" of type ")?;
    let kind = value.split(' ').next().unwrap_or(value);
    let message = format!("{before}json: cannot unmarshal {kind} into {of_type}");
    Some(with_field(message, vec![field.to_owned()]))
}

/// Reads an error of GraphQL, which names the field before the cause: `Variable "$order" got
/// invalid value 1.5 at "order.lines[0].count"; Int cannot …`.
fn graphql(text: &str) -> Option<Problem> {
    let (place, message) = text.strip_prefix("Variable \"$")?.split_once("\"; ")?;
    let (_, place) = place.rsplit_once(" at \"")?;
    let message = match message.split_once(" value: ") {
        Some((kind, _)) => format!("{kind} value: {VALUE}"),
        None => message.to_owned(),
    };
    Some(with_field(message, vec![place.to_owned()]))
}

/// Reads a JSON error of V8, which quotes ten characters before and after the wrong token:
/// `Unexpected token 'N', ..."rate":NaN,"co"... is not valid JSON`.
fn v8(text: &str) -> Option<Problem> {
    let (before, rest) = text.split_once("Unexpected token '")?;
    let (token, rest) = rest.split_once("', ")?;
    let (piece, _) = rest.rsplit_once(" is not valid JSON")?;
    let member = piece.find(&format!("\":{token}")).and_then(|at| piece.get(..at));
    let name =
        member.and_then(|member| member.rsplit(['"', '.']).next()).filter(|name| !name.is_empty());
    let message = format!("{before}Unexpected token '{token}', not valid JSON");
    Some(with_field(message, name.into_iter().map(ToOwned::to_owned).collect()))
}

/// Extracts the problem from a database error of Laravel, without the SQL statement and values that
/// Laravel appends: `… at row 1 (Connection: mysql, SQL: insert into …)`.
fn sql(text: &str) -> Option<Problem> {
    let ends = [" (Connection: ", " (SQL: "];
    let end = ends.iter().filter_map(|mark| text.find(mark)).min()?;
    text.contains("SQLSTATE[").then(|| Problem::text(text.get(..end).unwrap_or(text)))
}

/// Reads an error of Salesforce that repeats the value without quotation marks: `Site: data value
/// too large: Dock 7 (max length=80)`.
fn salesforce(text: &str) -> Option<Problem> {
    const MARK: &str = "data value too large: ";
    let at = text.find(MARK)? + MARK.len();
    let limit = text.rfind(" (max length=")?;
    (at <= limit).then(|| {
        let parts = [text.get(..at), Some(VALUE), text.get(limit..)];
        Problem::text(&parts.map(Option::unwrap_or_default).concat())
    })
}

/// Reads an error of Salesforce that ends with the value: `Lead Source: bad value for restricted
/// picklist field: web form`.
fn picklist(text: &str) -> Option<Problem> {
    let (before, _) = text.split_once(" picklist field: ")?;
    Some(Problem::text(&format!("{before} picklist field: {VALUE}")))
}

/// Reads an error of Elasticsearch, and removes the name of the index. Many clusters have one index
/// per day: `index [orders-2026.11.05] blocked by: …`.
fn elasticsearch(text: &str) -> Option<Problem> {
    let (_, cause) = text.strip_prefix("index [")?.split_once("] blocked by: ")?;
    Some(Problem::text(&format!("index [{VALUE}] blocked by: {cause}")))
}

/// Reads an error of Firestore, and removes the id of the document from its path: `Document already
/// exists: projects/shop/databases/(default)/documents/orders/A-17`.
fn firestore(text: &str) -> Option<Problem> {
    let (before, path) = text.split_once("/documents/")?;
    let (collection, _) = path.rsplit_once('/')?;
    Some(Problem::text(&format!("{before}/documents/{collection}/{VALUE}")))
}

/// Reads an error of PHP, and removes the file paths: `Uncaught TypeError: … string given, called
/// in /var/www/a.php on line 19`.
fn php(text: &str) -> Option<Problem> {
    let at = text.find("Uncaught ")?;
    let files = [", called in /", " in /"].iter().filter_map(|mark| text.get(at..)?.find(mark));
    Some(Problem::text(text.get(..at + files.min()?)?))
}

/// Reads an error of Envoy, which puts a fixed text and its retries before the reason: `upstream
/// connect error or disconnect/reset before headers. retried and …`.
fn envoy(text: &str) -> Option<Problem> {
    let (_, reason) =
        text.strip_prefix("upstream connect error or ")?.split_once("reset reason: ")?;
    let reason = reason.split_once("transport failure reason: ").map_or(reason, |(_, inner)| inner);
    let reason = reason.split_once("OPENSSL_internal:").map_or(reason, |(_, inner)| inner);
    let reason = reason.trim_end_matches(":TLS_error_end");
    // The `errno` values ETIMEDOUT (110) and ECONNREFUSED (111) of Linux.
    let reason = reason.replace("delayed connect error: 110", "connection timed out");
    let reason = reason.replace("delayed connect error: 111", "connection refused");
    Some(Problem::text(&format!("upstream connect error: {reason}")))
}

/// Reads an error of Protocol Buffers, and removes the position in the request: `(line 1:98):
/// unknown field`.
fn position(text: &str) -> Option<Problem> {
    let (before, rest) = text.split_once("(line ")?;
    let (place, after) = rest.split_once(')')?;
    let is_position =
        place.split(':').count() == 2 && place.split(':').all(|part| part.parse::<u32>().is_ok());
    let after = after.strip_prefix(':').unwrap_or(after).trim_start();
    is_position.then(|| Problem::text(&format!("{before}{after}")))
}
