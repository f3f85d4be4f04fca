//! Evaluates the expressions of a template, as far as the template itself says what their values are.
//!
//! Separate because it works on values and not on fields: afterwards a template is read like any other
//! document. What is evaluated: literals, `parameters` with a default value, `variables`, `format`, `concat`,
//! `resourceId`, `toLower`, and members of those values. Anything else stays open, with the reason, and is
//! reported only where a field needs it.
//!
//! Promises: positions are those of the expressions; nesting and the size of all values are bounded, so
//! variables that name each other end.

mod nested;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use super::super::node::{Key, Node, Open, Value};
use super::expression::{self, Expression, Kind};
use super::template;
use nested::PASSED;

/// The deepest nesting of values, calls and variables together.
const DEPTH_MAX: usize = 64;
/// The most steps of a template: one for each value, call, and 64 bytes of text.
const STEPS_MAX: usize = 100_000;
/// What stands for the subscription and the resource group of a deployment, which no template knows.
const PLACE: &str = "/subscriptions/{subscription}/resourceGroups/{resourceGroup}";

/// The fields of an event subscription that are read.
const READ_FIELDS: [&str; 9] =
    ["condition", "copy", "id", "lastmile", "name", "properties", "resourceGroup", "scope", "type"];

/// The document with its expressions evaluated, if it is a template; and the parameters whose default values its event
/// subscriptions have.
pub(super) fn evaluated(root: Node) -> (Node, BTreeSet<String>) {
    let schema = member(&root.value, "$schema").map(|schema| &schema.value);
    if !matches!(schema, Some(Value::Text(schema)) if template::is_template_schema(schema)) {
        return (root, BTreeSet::new());
    }
    let evaluation = Evaluation {
        parameters: member(&root.value, "parameters"),
        variables: member(&root.value, "variables"),
        place: PLACE.to_owned(),
        steps: Cell::new(STEPS_MAX),
        defaults: RefCell::default(),
        is_noted: Cell::default(),
    };
    let Value::Map(entries) = &root.value else { return (root, BTreeSet::new()) };
    let fields = entries.iter().map(|(key, node)| {
        let is_resources = key.value == "resources";
        (key.clone(), if is_resources { evaluation.resources(node) } else { node.clone() })
    });
    let evaluated = root.with(Value::Map(fields.collect()));
    (evaluated, evaluation.defaults.into_inner())
}

/// The fields of a resource on which event subscriptions depend: its own, or those in it, which have its name.
fn fields_read(resource: &Value) -> &'static [&'static str] {
    if is_subscription(resource) {
        &READ_FIELDS
    } else if nested::template(resource).is_some() && holds_subscription(resource) {
        &nested::FIELDS
    } else if holds_subscription(resource) {
        &["name", "type"]
    } else {
        &[]
    }
}

fn is_subscription(resource: &Value) -> bool {
    let Some(Value::Text(kind)) = member(resource, "type").map(|kind| &kind.value) else {
        return false;
    };
    kind.to_ascii_lowercase().ends_with(template::SUBSCRIPTIONS)
}

fn holds_subscription(resource: &Value) -> bool {
    let nested = member(nested::template(resource).unwrap_or(resource), "resources");
    let nested = nested.map(|nested| elements(&nested.value));
    let mut nested = nested.into_iter().flatten();
    nested.any(|of| is_subscription(&of.value) || holds_subscription(&of.value))
}

/// The resources of a list, or of a mapping from symbolic names.
fn elements(resources: &Value) -> Vec<&Node> {
    match resources {
        Value::List(elements) => elements.iter().collect(),
        Value::Map(entries) => entries.iter().map(|(_, of)| of).collect(),
        Value::Null
        | Value::Bool(_)
        | Value::Integer(_)
        | Value::Fraction(_)
        | Value::Text(_)
        | Value::Open(_) => Vec::new(),
    }
}

/// A value, or what of it is not known.
type Evaluated = Result<Value, String>;

/// What expressions may refer to.
struct Evaluation<'n> {
    parameters: Option<&'n Node>,
    variables: Option<&'n Node>,
    /// Where the deployment is.
    place: String,
    /// How many steps are left.
    steps: Cell<usize>,
    /// The parameters whose default values were used.
    defaults: RefCell<BTreeSet<String>>,
    /// Whether what is used now is noted.
    is_noted: Cell<bool>,
}

impl Evaluation<'_> {
    /// Takes steps for a value of so many bytes.
    fn step(&self, bytes: usize, depth: usize) -> Result<(), String> {
        let left = self.steps.get().checked_sub(1 + bytes / 64);
        self.steps.set(left.unwrap_or(0));
        if left.is_none() || depth > DEPTH_MAX {
            return Err("the template refers to itself, or is too large".to_owned());
        }
        Ok(())
    }

    /// Resources, and those in them, with their expressions evaluated.
    fn resources(&self, resources: &Node) -> Node {
        let value = match &resources.value {
            Value::List(elements) => {
                Value::List(elements.iter().map(|of| self.resource(of)).collect())
            }
            Value::Map(entries) => {
                let entry = |(key, of): &(_, Node)| (Clone::clone(key), self.resource(of));
                Value::Map(entries.iter().map(entry).collect())
            }
            Value::Null
            | Value::Bool(_)
            | Value::Integer(_)
            | Value::Fraction(_)
            | Value::Text(_)
            | Value::Open(_) => return self.node(resources, 0),
        };
        resources.with(value)
    }

    fn resource(&self, resource: &Node) -> Node {
        let Value::Map(entries) = &resource.value else { return self.node(resource, 1) };
        let fields_read = fields_read(&resource.value);
        let fields = entries.iter().map(|(key, of)| {
            if key.value == "resources" {
                return (key.clone(), self.resources(of));
            }
            if key.value == "properties" && nested::template(&resource.value).is_some() {
                self.is_noted.set(!fields_read.is_empty());
                return (key.clone(), self.deployment(&resource.value, of));
            }
            self.is_noted.set(fields_read.contains(&key.value.as_str()));
            (key.clone(), self.node(of, 2))
        });
        resource.with(Value::Map(fields.collect()))
    }

    /// A value with the expressions in it evaluated.
    fn node(&self, node: &Node, depth: usize) -> Node {
        let value = match &node.value {
            Value::Text(text) => match expression::kind(text) {
                Kind::Escaped(text) => Value::Text(text.to_owned()),
                Kind::Expression(inner) => self.text(text, inner, depth),
                Kind::Plain => node.value.clone(),
            },
            Value::List(elements) => {
                Value::List(elements.iter().map(|of| self.node(of, depth + 1)).collect())
            }
            Value::Map(entries) if has_copied_fields(entries) => Value::Open(Open {
                text: "copy".to_owned(),
                why: "fields are not made by copy".to_owned(),
            }),
            Value::Map(entries) => {
                let entry = |(key, of): &(_, Node)| (Clone::clone(key), self.node(of, depth + 1));
                Value::Map(entries.iter().map(entry).collect())
            }
            Value::Null
            | Value::Bool(_)
            | Value::Integer(_)
            | Value::Fraction(_)
            | Value::Open(_) => node.value.clone(),
        };
        node.with(value)
    }

    /// The value of an expression, or the expression itself.
    fn text(&self, text: &str, inner: &str, depth: usize) -> Value {
        let parsed = expression::parse(inner).ok_or_else(|| "it cannot be read".to_owned());
        let value = parsed.and_then(|expression| self.value(&expression, depth + 1));
        value.unwrap_or_else(|why| Value::Open(Open { text: text.to_owned(), why }))
    }

    fn value(&self, expression: &Expression, depth: usize) -> Evaluated {
        self.step(0, depth)?;
        match expression {
            Expression::Text(text) => self.produced(text.clone(), depth),
            Expression::Integer(number) => Ok(Value::Integer((*number).into())),
            Expression::Call { name, arguments } => self.call(name, arguments, depth),
            Expression::Member { of, key } => {
                let (of, key) = (self.value(of, depth + 1)?, self.value(key, depth + 1)?);
                let found = match (&of, &key) {
                    (Value::Map(_), Value::Text(name)) => member(&of, name),
                    (Value::List(elements), Value::Integer(index)) => {
                        usize::try_from(*index).ok().and_then(|index| elements.get(index))
                    }
                    (_, _) => None,
                };
                found.map_or_else(
                    || Err("a member of it is missing".to_owned()),
                    |of| known(&of.value),
                )
            }
        }
    }

    fn call(&self, name: &str, arguments: &[Expression], depth: usize) -> Evaluated {
        match name.to_ascii_lowercase().as_str() {
            "parameters" => self.defined(name, self.parameters, arguments, depth),
            "variables" => self.defined(name, self.variables, arguments, depth),
            "concat" => self.produced(self.texts(name, arguments, depth)?.concat(), depth),
            "tolower" => {
                self.produced(self.texts(name, arguments, depth)?.concat().to_lowercase(), depth)
            }
            "format" => {
                let texts = self.texts(name, arguments, depth)?;
                let formatted = texts.split_first().and_then(|(format, of)| formatted(format, of));
                self.produced(formatted.ok_or("its format cannot be read")?, depth)
            }
            "resourceid" => {
                let id = resource_id(&self.place, &self.texts(name, arguments, depth)?);
                self.produced(id.ok_or("its resourceId has a name too few or too many")?, depth)
            }
            _ => Err(format!("{name}(…) is not evaluated")),
        }
    }

    /// Text that was made here.
    fn produced(&self, text: String, depth: usize) -> Evaluated {
        self.step(text.len(), depth)?;
        Ok(Value::Text(text))
    }

    /// The arguments as text.
    fn texts(
        &self,
        of: &str,
        arguments: &[Expression],
        depth: usize,
    ) -> Result<Vec<String>, String> {
        let text = |argument| match self.value(argument, depth + 1)? {
            Value::Text(text) => Ok(text),
            Value::Integer(number) => Ok(number.to_string()),
            Value::Bool(_)
            | Value::Fraction(_)
            | Value::Null
            | Value::List(_)
            | Value::Map(_)
            | Value::Open(_) => Err(format!("{of}(…) is evaluated for text only")),
        };
        arguments.iter().map(text).collect()
    }

    /// The value of a parameter or variable.
    fn defined(
        &self,
        of: &str,
        definitions: Option<&Node>,
        arguments: &[Expression],
        depth: usize,
    ) -> Evaluated {
        let [Expression::Text(name)] = arguments else {
            return Err(format!("{of}(…) needs a name in quotes"));
        };
        let is_parameter = of.eq_ignore_ascii_case("parameters");
        let found = definitions.and_then(|all| member(&all.value, name));
        if let Some(passed) =
            found.and_then(|of| member(&of.value, PASSED)).filter(|_| is_parameter)
        {
            self.step(size(passed), depth)?;
            return known(&passed.value);
        }
        let found = match found {
            Some(of) if is_parameter => member(&of.value, "defaultValue"),
            found => found,
        };
        match found {
            Some(node) => {
                let value = known(&self.bounded(node, depth + 1)?.value)?;
                if is_parameter && self.is_noted.get() {
                    self.defaults.borrow_mut().insert(name.clone());
                }
                Ok(value)
            }
            None if is_parameter => Err(format!("parameters('{name}') has no default value")),
            None => Err(format!("variables('{name}') is not defined")),
        }
    }

    /// The value of a definition; each of its values is a step, since it is copied.
    fn bounded(&self, node: &Node, depth: usize) -> Result<Node, String> {
        self.step(size(node), depth)?;
        Ok(self.node(node, depth))
    }
}

/// Whether fields of a mapping are made by `copy`: a list of them, unlike that of a resource.
fn has_copied_fields(entries: &[(Key, Node)]) -> bool {
    let is_copy = |(key, of): &(Key, Node)| {
        key.value.eq_ignore_ascii_case("copy") && matches!(of.value, Value::List(_))
    };
    entries.iter().any(is_copy)
}

/// How large a value is: 64 for each value in it, and its texts.
fn size(node: &Node) -> usize {
    match &node.value {
        Value::Text(text) => 64 + text.len(),
        Value::List(elements) => 64 + elements.iter().map(size).sum::<usize>(),
        Value::Map(entries) => {
            64 + entries.iter().map(|(key, of)| key.value.len() + size(of)).sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Integer(_) | Value::Fraction(_) | Value::Open(_) => {
            64
        }
    }
}

/// A member of a mapping; names of templates ignore case.
fn member<'n>(of: &'n Value, name: &str) -> Option<&'n Node> {
    let Value::Map(entries) = of else { return None };
    entries.iter().find(|(key, _)| key.value.eq_ignore_ascii_case(name)).map(|(_, node)| node)
}

/// The value, unless it is open.
fn known(value: &Value) -> Evaluated {
    match value {
        Value::Open(open) => Err(open.why.clone()),
        Value::Null
        | Value::Bool(_)
        | Value::Integer(_)
        | Value::Fraction(_)
        | Value::Text(_)
        | Value::List(_)
        | Value::Map(_) => Ok(value.clone()),
    }
}

/// `{0}` and so on replaced; two braces stand for one. `None` for other items, and for missing arguments.
fn formatted(format: &str, arguments: &[String]) -> Option<String> {
    let (mut text, mut rest) = (String::new(), format);
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at_checked(at)?;
        text.push_str(before);
        if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
            text.push_str(from.get(..1)?);
            rest = after;
            continue;
        }
        let (index, after) = from.strip_prefix('{')?.split_once('}')?;
        text.push_str(arguments.get(index.parse::<usize>().ok()?)?);
        rest = after;
    }
    text.push_str(rest);
    Some(text)
}

/// The id of a resource: subscription and resource group, both optional, its type, and a name for each part of
/// the type.
fn resource_id(place: &str, arguments: &[String]) -> Option<String> {
    let at = arguments.iter().position(|argument| argument.contains('/'))?;
    let (around, [kind, names @ ..]) = arguments.split_at_checked(at)? else { return None };
    let place = match around {
        [] => place.to_owned(),
        [group] => {
            let (subscription, _) = place.rsplit_once('/')?;
            format!("{subscription}/{group}")
        }
        [subscription, group] => format!("/subscriptions/{subscription}/resourceGroups/{group}"),
        [_, _, ..] => return None,
    };
    let (provider, kinds) = kind.split_once('/')?;
    let kinds: Vec<&str> = kinds.split('/').collect();
    if kinds.len() != names.len() {
        return None;
    }
    let parts: String =
        kinds.iter().zip(names).map(|(kind, name)| format!("/{kind}/{name}")).collect();
    Some(format!("{place}/providers/{provider}{parts}"))
}
