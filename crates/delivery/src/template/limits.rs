//! The limits of templates.
//!
//! Separate because each limit depends on others: the fuel bounds the steps that the tags allow.

/// The longest text of one template.
pub const TEMPLATE_MAX_BYTES: usize = 16 * 1024;
/// The longest JSON of one body template, with everything that is constant.
pub const BODY_TEMPLATE_MAX_BYTES: usize = 256 * 1024;
/// The most strings with expressions in one body template.
pub const BODY_STRINGS_MAX: usize = 500;
/// The most lists and objects of a body template inside each other.
pub const BODY_DEPTH_MAX: usize = 64;
/// The most `{{ }}` and `{% %}` of one template.
pub const TAGS_MAX: usize = 200;
/// The most tokens of one `{{ }}` or `{% %}`: the parser calls itself once for each `-`, `not` and `else` in a row.
pub const TAG_TOKENS_MAX: usize = 200;
/// The most brackets inside each other.
pub const BRACKETS_MAX: usize = 16;
/// The most `if` and `for` inside each other.
pub const STATEMENTS_NESTED_MAX: usize = 8;
/// The most operators, filters and members inside each other.
pub const EXPRESSION_DEPTH_MAX: usize = 64;
/// The most lists and objects of an event inside each other, where a template writes or compares them; `serde_json` reads
/// as many.
pub const JSON_DEPTH_MAX: usize = 128;
/// The longest rendered body, and the longest text that an expression builds.
pub const RENDERED_MAX_BYTES: usize = 1024 * 1024;
/// The longest rendered header value.
pub const HEADER_MAX_BYTES: usize = 4 * 1024;
/// The longest rendered query value, encoded.
pub const QUERY_VALUE_MAX_BYTES: usize = 4 * 1024;
/// The longest rendered URL of a path template.
pub const URL_MAX_BYTES: usize = 8 * 1024;
/// The work that all templates of one request may do. A step of evaluation costs 64, a byte that is read 1, and a byte of output 2. A byte of
/// a text that an expression builds costs 4. So at most 131,072 steps are done, and at most 2 MiB are built besides the output.
pub const FUEL_MAX: u64 = 8 * 1024 * 1024;
