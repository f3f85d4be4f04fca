//! The limits of templates.
//!
//! This module is separate because the limits depend on each other. For example, a few tags with
//! loops can cause many steps, so the fuel limits the steps.

/// Maximum size of one template in bytes.
pub const TEMPLATE_MAX_BYTES: usize = 16 * 1024;
/// Maximum size of one body template in bytes, as JSON with all constant parts.
pub const BODY_TEMPLATE_MAX_BYTES: usize = 256 * 1024;
/// Maximum number of strings with expressions in one body template.
pub const BODY_STRINGS_MAX: usize = 500;
/// Maximum nesting depth of lists and objects in a body template.
pub const BODY_DEPTH_MAX: usize = 64;
/// Maximum number of tags, `{{ }}` and `{% %}`, in one template.
pub const TAGS_MAX: usize = 200;
/// Maximum number of tokens in one tag. The limit bounds the stack: the parser recurses for each
/// consecutive `-`, `not` and `else`.
pub const TAG_TOKENS_MAX: usize = 200;
/// Maximum nesting depth of brackets in a tag.
pub const BRACKETS_MAX: usize = 16;
/// Maximum nesting depth of `if` and `for`.
pub const STATEMENTS_NESTED_MAX: usize = 8;
/// Maximum nesting depth of operators, filters and members in an expression.
pub const EXPRESSION_DEPTH_MAX: usize = 64;
/// Maximum nesting depth of lists and objects in a value that a template writes or compares.
/// `serde_json` has the same limit for parsing.
pub const JSON_DEPTH_MAX: usize = 128;
/// Maximum size in bytes of a rendered body, and of a text that an expression builds.
pub const RENDERED_MAX_BYTES: usize = 1024 * 1024;
/// Maximum size in bytes of a rendered header value.
pub const HEADER_MAX_BYTES: usize = 4 * 1024;
/// Maximum size in bytes of a query value after rendering and encoding.
pub const QUERY_VALUE_MAX_BYTES: usize = 4 * 1024;
/// Maximum size in bytes of the rendered URL of a path template.
pub const URL_MAX_BYTES: usize = 8 * 1024;
/// The fuel for all templates of one request. Templates consume it as follows:
///
/// - Each evaluation of an expression costs 64.
/// - Each item of a list that an expression builds costs 128, and so does each iteration of a loop.
/// - A byte of a name that is looked up in an object costs 8.
/// - A byte that is read costs 1.
/// - A byte of the output costs 2.
/// - A byte of a text that an expression builds costs 4.
///
/// So the templates of one request can evaluate at most 131,072 expressions, or build at most 2 MiB
/// of texts.
pub const FUEL_MAX: u64 = 8 * 1024 * 1024;
