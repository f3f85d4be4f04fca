//! Finds the errors in a JSON body by the names of members that frameworks use.
//!
//! Separate from the syntax and from the text of a title. Three readers cover all frameworks: lists
//! of errors, messages by field, and single errors. To support a framework, add a row to a table
//! here, not a function. Pure.
//!
//! Promises: the errors have the order of the body. Members of an object are found by name, because
//! their order is not significant.

use serde_json::{Map, Value};

use super::problem::Problem;

/// Maximum depth of nested objects that are read.
const DEPTH_MAX: usize = 8;
/// Maximum number of errors that are read from one body.
const PROBLEMS_MAX: usize = 64;

type Object = Map<String, Value>;

/// Names of members that hold several errors, in order of preference. Each comment lists examples
/// of frameworks with this member.
const LISTS: [(&[&str], Errors); 25] = [
    (&["errors"], Errors::Any), // Rails, Laravel, JSON:API, GraphQL, ASP.NET, Phoenix, Spring, GitHub
    (&["error", "errors"], Errors::Located), // Google, Mongoose
    (&["error", "issues"], Errors::Any), // Zod
    (&["error", "innererror", "errordetails"], Errors::Located), // OData of SAP
    (&["issues"], Errors::Any), // Zod, Valibot
    (&["embedded", "errors"], Errors::Any), // Micronaut
    (&["violations"], Errors::Any), // Symfony, Zalando, Quarkus
    (&["invalidparams"], Errors::Any), // RFC 7807
    (&["fieldviolations"], Errors::Any), // gRPC
    (&["details"], Errors::Located), // gRPC, Joi
    (&["error", "details"], Errors::Located), // Google, Azure
    (&["detail"], Errors::Any), // FastAPI
    (&["message"], Errors::Any), // Nest
    (&["messages"], Errors::Any), // Play, marshmallow
    (&["fielderrors"], Errors::Any), // Zod, Spring
    (&["formerrors"], Errors::Any), // Zod
    (&["validationerrors"], Errors::Any), // Ktor, Sequelize
    (&["validation", "body"], Errors::Any), // Celebrate
    (&["validation"], Errors::Any), // Celebrate before 11
    (&["validationmessages"], Errors::Any), // Laminas
    (&["constraintviolations"], Errors::Any), // Jersey
    (&["parameterviolations"], Errors::Any), // RESTEasy
    (&["modelstate"], Errors::Any), // ASP.NET Web API
    (&["problems"], Errors::Any),
    (&["error"], Errors::Listed), // Laravel, CodeIgniter
];

/// The forms in which a member may hold errors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Errors {
    /// Lists of errors, and messages by field.
    Any,
    /// Only errors that name a field. Errors without a field are ignored, because they only add
    /// details to a message in another member.
    Located,
    /// Only a list of errors, or an object that contains only lists of messages. Any other object
    /// may be a single error.
    Listed,
}

/// Names of members with a general text. [`is_named`] compares names, and ignores case and
/// punctuation.
const GENERAL: [&str; 5] = ["title", "error", "faultcode", "errortype", "summary"];
const SPECIFIC: [&str; 18] = [
    "message",
    "msg",
    "detail",
    "details",
    "description",
    "defaultmessage",
    "errordescription",
    "errormessage",
    "exception",
    "error",
    "faultstring",
    "reason",
    "title",
    "errormsg",
    "usermessage",
    "cause",
    "text",
    "info",
];
const CODES: [&str; 7] =
    ["code", "errorcode", "errcode", "type", "exception", "errortype", "status"];
/// Names of members with a more detailed code.
const SUBCODES: [&str; 3] = ["declinecode", "subcode", "errorsubcode"]; // Stripe, Facebook
/// Names of members that repeat the rejected value.
const REJECTED: [&str; 5] = ["input", "value", "rejectedvalue", "received", "invalidvalue"];
/// Names of members that name the field of an error.
const FIELDS: [&str; 13] = [
    "loc",
    "propertypath",
    "path",
    "field",
    "pointer",
    "param",
    "instancepath",
    "property",
    "target",
    "attribute",
    "fieldname",
    "name",
    "key",
];
/// Names of members that name the field of a single error. In a single error, the other names in
/// [`FIELDS`] have other meanings.
const FIELDS_OF_SINGLE: [&str; 5] = ["param", "field", "target", "attribute", "fieldname"];
/// Names of members whose object is the error itself.
const INNER: [&str; 4] = ["error", "errors", "fault", "exception"];
/// Names of members whose object may be the error, if the outer object has no text and no code.
const ENVELOPES: [&str; 6] = ["detail", "response", "data", "body", "meta", "result"];

/// Returns the errors in a JSON value; empty if it contains no known member.
pub(super) fn problems(value: &Value) -> Vec<Problem> {
    let mut found = match value {
        Value::Object(object) => of_object(object),
        Value::Array(_) => items(value, &[], 0),
        Value::String(text) => vec![Problem::text(text)],
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    };
    found.truncate(PROBLEMS_MAX);
    found
}

fn of_object(object: &Object) -> Vec<Problem> {
    for (path, errors) in LISTS {
        let found = at(object, path).map(|value| listed(value, errors)).unwrap_or_default();
        if !found.is_empty() {
            return found;
        }
    }
    if let Some(problem) = missing_route(object).or_else(|| single(object, 0)) {
        return vec![problem];
    }
    // Django REST: the whole body is messages by field.
    let is_by_field = object.values().all(is_messages);
    if is_by_field { by_field(object, &[], 0) } else { Vec::new() }
}

/// Reads the response of Spring and others to a request that no route matches. This response
/// contains only the path.
fn missing_route(object: &Object) -> Option<Problem> {
    let status = member(object, "status")?.as_u64()?;
    let path = member(object, "path")?.as_str()?;
    let is_alone = SPECIFIC.iter().all(|name| *name == "error" || text_in(object, name).is_none());
    let error = spoken(member(object, "error")?)?;
    let is_missing = is_alone && matches!(status, 404 | 405);
    is_missing.then(|| Problem::text(&format!("{error}: {path}")))
}

/// Returns the member of an object at a path.
fn at<'a>(object: &'a Object, path: &[&str]) -> Option<&'a Value> {
    let (last, first) = path.split_last()?;
    let mut object = object;
    for name in first {
        object = member(object, name)?.as_object()?;
    }
    member(object, last)
}

fn member<'a>(object: &'a Object, name: &str) -> Option<&'a Value> {
    object.iter().find(|(key, _)| is_named(key, name)).map(|(_, value)| value)
}

/// True if a member has this name. Ignores case and punctuation: `Invalid-Params` equals
/// `invalidparams`. Allocates nothing, because each error is compared with dozens of names.
fn is_named(member: &str, name: &str) -> bool {
    let letters = member.bytes().filter(|byte| !matches!(byte, b'-' | b'_' | b'@' | b' '));
    letters.map(|byte| byte.to_ascii_lowercase()).eq(name.bytes())
}

fn listed(value: &Value, errors: Errors) -> Vec<Problem> {
    let mut found = match value {
        Value::Array(_) => items(value, &[], 0),
        // Hapi: only the location of the error; the text is a member beside this object.
        Value::Object(object) if object.keys().all(|key| key == "source" || key == "keys") => {
            Vec::new()
        }
        // Celebrate: one error with its location.
        Value::Object(object) if object.contains_key("keys") => single(object, 0)
            .map(|problem| located(problem, place_by(object, &["keys"])))
            .into_iter()
            .collect(),
        Value::Object(object)
            if single(object, 0).is_none() || object.values().all(is_messages) =>
        {
            by_field(object, &[], 0)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            Vec::new()
        }
    };
    match errors {
        Errors::Any => {}
        Errors::Located => found.retain(|problem| !problem.field.is_empty()),
        Errors::Listed
            if value.as_object().is_some_and(|object| !object.values().all(is_messages)) =>
        {
            found.clear();
        }
        Errors::Listed => {}
    }
    found
}

/// True if the value is a list of messages, or messages by field.
fn is_messages(value: &Value) -> bool {
    match value {
        Value::Array(elements) => {
            elements.iter().all(|element| element.is_string() || is_messages(element))
        }
        Value::Object(object) => object.values().all(is_messages),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns the errors in a list. Elements are texts, objects with one error each, or objects with
/// messages by field.
fn items(value: &Value, field: &[String], depth: usize) -> Vec<Problem> {
    let elements = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let problems = elements.iter().flat_map(|element| match element {
        Value::String(text) => vec![Problem { field: field.to_vec(), ..Problem::text(text) }],
        Value::Object(object) => item(object, field, depth + 1),
        Value::Array(_) if depth < DEPTH_MAX => items(element, field, depth + 1),
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    });
    problems.take(PROBLEMS_MAX).collect()
}

/// Returns the errors within an element, such as the violations of a field. If there are none, the
/// element itself is the error.
fn item(object: &Object, field: &[String], depth: usize) -> Vec<Problem> {
    if depth > DEPTH_MAX {
        return Vec::new();
    }
    let place = [field, &place(object)].concat();
    for name in ["fieldviolations", "violations", "errors", "constraints"] {
        let found = match member(object, name) {
            Some(list @ Value::Array(_)) => items(list, &place, depth),
            // class-validator: messages by rule.
            Some(Value::Object(rules)) => by_rule(rules, &place),
            _ => Vec::new(),
        };
        if !found.is_empty() {
            return found;
        }
    }
    // class-validator: the errors of the members of a field.
    if let Some(children @ Value::Array(_)) = member(object, "children") {
        let found = items(children, &place, depth);
        if !found.is_empty() {
            return found;
        }
    }
    match single(object, depth) {
        // The `path` of a GraphQL error is a path of the response, not of the request.
        Some(problem) if object.contains_key("extensions") => vec![problem],
        Some(problem) => vec![located(problem, place)],
        None if object.values().all(is_messages) => by_field(object, field, depth),
        None => Vec::new(),
    }
}

/// Sets the field of an error, unless `field` is empty. Drops the code of an error that gets a
/// field and has a text, because the code only repeats the text.
fn located(problem: Problem, field: Vec<String>) -> Problem {
    let code = problem.code.filter(|_| field.is_empty() || problem.texts.is_empty());
    let field = if field.is_empty() { problem.field } else { field };
    Problem { code, field, ..problem }
}

/// Reads messages that are keyed by the name of the violated rule.
fn by_rule(rules: &Object, field: &[String]) -> Vec<Problem> {
    let texts = rules.values().filter_map(Value::as_str);
    texts.map(|text| Problem { field: field.to_vec(), ..Problem::text(text) }).collect()
}

/// Reads messages that are keyed by field. A field may contain further fields.
fn by_field(object: &Object, field: &[String], depth: usize) -> Vec<Problem> {
    if depth > DEPTH_MAX {
        return Vec::new();
    }
    // ASP.NET: if a field such as `$.lines[0].price` cannot be read, the argument `order` is
    // reported as missing too.
    let is_unread = object.keys().any(|name| name.starts_with("$."));
    let named = object.iter().filter(|(name, _)| !is_unread || name.starts_with('$'));
    let problems = named.flat_map(|(name, value)| {
        let field = [field, std::slice::from_ref(name)].concat();
        match value {
            Value::String(text) => vec![Problem { field, ..Problem::text(text) }],
            Value::Array(_) => items(value, &field, depth),
            // Mongoose and Django: an object with one error for each field.
            Value::Object(object) => {
                match single(object, depth).filter(|problem| !problem.texts.is_empty()) {
                    Some(problem) => vec![located(problem, field)],
                    None => by_field(object, &field, depth + 1),
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
        }
    });
    problems.take(PROBLEMS_MAX).collect()
}

/// Returns the path of the field that an error names, as a text or as a list of segments. JSON:API
/// has the path in `source`.
fn place(object: &Object) -> Vec<String> {
    place_by(object, &FIELDS)
}

fn place_by(object: &Object, names: &[&str]) -> Vec<String> {
    let source = member(object, "source").and_then(Value::as_object);
    let found = names.iter().find_map(|name| match member(object, name)? {
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(segments) => Some(segments.iter().filter_map(scalar).collect()),
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) => None,
    });
    let parameter = || Some(vec![member(source?, "parameter")?.as_str()?.to_owned()]);
    found
        .or_else(|| source.map(place).filter(|path| !path.is_empty()))
        .or_else(parameter)
        .unwrap_or_default()
}

/// Reads a single error: its code, its general text and its specific text. Inner objects take
/// precedence.
fn single(object: &Object, depth: usize) -> Option<Problem> {
    let within = |names: &[&str]| {
        let objects = names.iter().filter_map(|name| member(object, name)?.as_object());
        objects.filter(|_| depth < DEPTH_MAX).find_map(|object| single(object, depth + 1))
    };
    let inner = within(&INNER).unwrap_or_default();
    let text = |names: &[&str]| names.iter().find_map(|name| text_in(object, name));
    let own = [text(&GENERAL), text(&SPECIFIC)].into_iter().flatten();
    let mut texts: Vec<String> = if inner.texts.is_empty() {
        permission(object).into_iter().chain(own).collect()
    } else {
        inner.texts
    };
    texts.dedup();
    let code = inner.code.or_else(|| code(object));
    let rejected = REJECTED.iter().find_map(|name| spoken(member(object, name)?));
    let rejected = inner.rejected.or(rejected);
    let field = Some(inner.field).filter(|field| !field.is_empty());
    let field = field.unwrap_or_else(|| place_by(object, &FIELDS_OF_SINGLE));
    if texts.is_empty() && code.is_none() {
        return within(&ENVELOPES);
    }
    Some(Problem { code, texts, field, rejected })
}

/// Returns the text of the member `name`. Play writes a list in `msg`, of which the first element is
/// used. An `exception` is used only if it has a description, such as `#<KeyError: no id>`: the
/// name of a class alone is an error code.
fn text_in(object: &Object, name: &str) -> Option<String> {
    let value = member(object, name)?;
    match name {
        "msg" => spoken(value.get(0).unwrap_or(value)),
        // OData 2: a text and its language.
        "message" => spoken(value.get("value").unwrap_or(value)),
        "exception" => {
            let text = spoken(value).filter(|text| text.contains(' '))?;
            let inner = text.strip_prefix("#<").and_then(|text| text.strip_suffix('>'));
            Some(inner.unwrap_or(&text).to_owned())
        }
        _ => spoken(value),
    }
}

/// Returns the permission in the details of a Google error: `pubsub.topics.publish for
/// projects/shop/topics/orders`.
fn permission(object: &Object) -> Option<String> {
    let details = member(object, "details")?.as_array()?;
    let metadata = details.iter().find_map(|detail| detail.get("metadata"))?.as_object()?;
    let permission = spoken(member(metadata, "permission")?)?;
    match member(metadata, "resource").and_then(spoken) {
        Some(resource) => Some(format!("{permission} for {resource}")),
        None => Some(permission),
    }
}

fn spoken(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.trim().is_empty()).map(ToOwned::to_owned)
}

/// Returns the code of an error, such as `ORA-00942`, `1001`, or `ValidationException` for
/// `com.amazonaws#ValidationException`. GraphQL has the code in `extensions`.
fn code(object: &Object) -> Option<String> {
    let extensions = member(object, "extensions").and_then(Value::as_object);
    let find = |names: &[&str]| {
        names.iter().find_map(|name| code_of(name, scalar(member(object, name)?)?))
    };
    let own = match (find(&CODES), find(&SUBCODES)) {
        (Some(code), Some(sub)) => Some(format!("{code}/{sub}")),
        (code, sub) => code.or(sub),
    };
    own.or_else(|| extensions.and_then(code))
}

/// Returns the code in a member. Ignores lower-case types, which are meant for programs, and HTTP
/// statuses, which are already known.
fn code_of(name: &str, value: String) -> Option<String> {
    let is_type = matches!(name, "type" | "errortype" | "exception");
    let last = value.rsplit(['#', '/', '\\', '.']).next().filter(|_| is_type);
    let value = last.unwrap_or(&value);
    let is_word = value.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:".contains(c));
    let is_upper = value.starts_with(|c: char| c.is_ascii_uppercase());
    let number: Option<u32> = value.parse().ok();
    let is_code = match name {
        "type" | "errortype" | "exception" => is_upper,
        "status" => is_upper && !value.contains(|c: char| c.is_ascii_lowercase()),
        // Small numbers are status codes of gRPC.
        _ => !number.is_some_and(|number| number < 17 || (100..600).contains(&number)),
    };
    (is_word && is_code && !value.is_empty()).then(|| value.to_owned())
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
