//! What a publisher sent, byte for byte, and a view of it.
//!
//! The bytes of an event are never rebuilt: the same text is queued, posted and stored. What the
//! engine needs to know (is it well formed, what is its id, does a filter take it) comes from
//! [`Members`], a view that borrows the text and keeps every value in the publisher's own spelling.
//! An event remembers where its members stand, so that nobody reads it again. A record may hold one
//! event or a JSON array of them; a bad element of an array spoils only itself.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::foreign;

/// How the records of a topic are read (`spec.input`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Input {
    /// By their shape: CloudEvents, Event Grid, or custom JSON.
    #[default]
    Auto,
    /// Every event is a CloudEvent.
    CloudEvents,
    /// Every event follows the Event Grid schema.
    EventGrid,
    /// Any JSON.
    Custom,
    /// Any text, not looked into.
    Opaque,
    /// Notifications of Amazon SNS, each the CloudEvent [`foreign`](crate::foreign) makes of it.
    Sns,
    /// Events of Amazon EventBridge, each the CloudEvent [`foreign`](crate::foreign) makes of it.
    EventBridge,
    /// Event notifications of Amazon S3: one CloudEvent for each record, as
    /// [`foreign`](crate::foreign) makes it.
    S3,
}

impl Input {
    /// Every way of reading.
    pub const ALL: [Self; 8] = [
        Self::Auto,
        Self::CloudEvents,
        Self::EventGrid,
        Self::Custom,
        Self::Opaque,
        Self::Sns,
        Self::EventBridge,
        Self::S3,
    ];

    /// The word of subscription files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::CloudEvents => "cloudevents",
            Self::EventGrid => "eventgrid",
            Self::Custom => "custom",
            Self::Opaque => "opaque",
            Self::Sns => "sns",
            Self::EventBridge => "eventbridge",
            Self::S3 => "s3",
        }
    }
}

/// The shape an event came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// CloudEvents 1.0, structured JSON.
    CloudEvent,
    /// The Event Grid event schema.
    EventGrid,
    /// Any other JSON.
    Custom,
    /// Any text.
    Opaque,
}

/// One published event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    text: Arc<str>,
    shape: Shape,
    members: Arc<[Span]>,
}

/// Why a text is no event. The text itself is kept by the caller.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Malformed {
    /// Not JSON at all.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// A member of the event stands twice.
    #[error("the member \"{0}\" stands twice")]
    DuplicateMember(String),
    /// More than [`ELEMENTS_MAX`] elements.
    #[error("an array of {0} elements; {ELEMENTS_MAX} are the most a record may have")]
    TooManyElements(usize),
    /// It says it is a CloudEvent, or has to be one, and breaks its rules.
    #[error("not a valid CloudEvent: {0}")]
    CloudEvent(String),
    /// It has to follow the Event Grid schema and does not.
    #[error("not a valid Event Grid event: {0}")]
    EventGrid(String),
    /// It has to be what a publisher of this input writes, and is not.
    #[error("not what the input {0} reads: {1}")]
    Foreign(&'static str, String),
}

/// A record has at most this many elements. The shortest CloudEvent is above 50 bytes, so no 1 MiB
/// of them has more.
pub const ELEMENTS_MAX: usize = 20_000;

/// Most events have no more members.
const USUAL_MEMBERS: usize = 10;

/// One element of a record: an event, or the text of what is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Element {
    /// A well-formed event.
    Event(Event),
    /// What could not be read, and why.
    Malformed {
        /// The text, as published.
        text: Arc<str>,
        /// What is wrong with it.
        why: Malformed,
    },
}

/// Reads a record's body into its events, in order: a JSON array is one event per element, a
/// notification of S3 one per record.
#[must_use]
pub fn decode(body: &Arc<str>, input: Input) -> Vec<Element> {
    let whole = |why| vec![Element::Malformed { text: Arc::clone(body), why }];
    if input == Input::Opaque || !body.trim_start().starts_with('[') {
        return at_most(foreign::decode(body, input), body);
    }
    match serde_json::from_str::<Vec<&RawValue>>(body) {
        Ok(elements) if elements.len() > ELEMENTS_MAX => {
            whole(Malformed::TooManyElements(elements.len()))
        }
        Ok(elements) => {
            let elements = elements
                .into_iter()
                .flat_map(|element| foreign::decode(&element.get().into(), input));
            at_most(elements.collect(), body)
        }
        Err(error) => whole(Malformed::NotJson(error.to_string())),
    }
}

fn at_most(elements: Vec<Element>, body: &Arc<str>) -> Vec<Element> {
    match elements.len() {
        many if many > ELEMENTS_MAX => {
            vec![Element::Malformed {
                text: Arc::clone(body),
                why: Malformed::TooManyElements(many),
            }]
        }
        _ => elements,
    }
}

/// Reads one event.
pub(crate) fn decode_one(text: &Arc<str>, input: Input) -> Element {
    if input == Input::Opaque {
        return Element::Event(Event::unread(text, Shape::Opaque));
    }
    let read = Members::parse(text)
        .and_then(|members| Ok((shape_of(&members, input)?, members.spans.into())));
    match read {
        Ok((shape, members)) => Element::Event(Event { text: Arc::clone(text), shape, members }),
        Err(why) => Element::Malformed { text: Arc::clone(text), why },
    }
}

fn shape_of(members: &Members<'_>, input: Input) -> Result<Shape, Malformed> {
    match input {
        Input::CloudEvents | Input::Sns | Input::EventBridge | Input::S3 => {
            check_cloud_event(members).map(|()| Shape::CloudEvent)
        }
        Input::EventGrid => check_event_grid(members).map(|()| Shape::EventGrid),
        Input::Custom => Ok(Shape::Custom),
        Input::Opaque => Ok(Shape::Opaque),
        Input::Auto if members.get("specversion").is_some() => {
            check_cloud_event(members).map(|()| Shape::CloudEvent)
        }
        Input::Auto if check_event_grid(members).is_ok() => Ok(Shape::EventGrid),
        Input::Auto => Ok(Shape::Custom),
    }
}

/// Whether a text is a valid structured CloudEvent.
pub(crate) fn is_cloud_event(text: &str) -> bool {
    text.trim_start().starts_with('{')
        && Members::parse(text).is_ok_and(|members| check_cloud_event(&members).is_ok())
}

/// CloudEvents 1.0, required attributes: `specversion` 1.0 and non-empty `id`, `source`, `type`;
/// attributes are no objects or arrays; `data` or `data_base64`, not both. What real publishers
/// send beyond the letter of the specification (odd attribute names, `dataschema: "#"`) is carried.
fn check_cloud_event(members: &Members<'_>) -> Result<(), Malformed> {
    let wrong = |what: String| Err(Malformed::CloudEvent(what));
    if members.text("specversion").as_deref() != Some("1.0") {
        return wrong("specversion has to be \"1.0\"".to_owned());
    }
    for name in ["id", "source", "type"] {
        if members.text(name).is_none_or(|text| text.is_empty()) {
            return wrong(format!("{name} has to be a non-empty string"));
        }
    }
    if members.get("data").is_some() && members.get("data_base64").is_some() {
        return wrong("data and data_base64 exclude each other".to_owned());
    }
    if members.get("data_base64").is_some() && members.text("data_base64").is_none() {
        return wrong("data_base64 has to be a string".to_owned());
    }
    for (name, value) in members.iter().filter(|(name, _)| !matches!(*name, "data" | "data_base64"))
    {
        if value.starts_with(['{', '[']) {
            return wrong(format!("the attribute {name} is neither string, number nor boolean"));
        }
    }
    Ok(())
}

/// Event Grid event schema, required members.
fn check_event_grid(members: &Members<'_>) -> Result<(), Malformed> {
    for name in ["id", "subject", "eventType", "eventTime"] {
        if members.text(name).is_none_or(|text| text.is_empty()) {
            return Err(Malformed::EventGrid(format!("{name} has to be a non-empty string")));
        }
    }
    Ok(())
}

impl Event {
    /// An event whose bytes were checked before they were queued: what comes back from our own
    /// queues.
    #[must_use]
    pub fn recall(text: &Arc<str>, input: Input) -> Self {
        match decode_one(text, input) {
            Element::Event(event) => event,
            // The topic may be read differently today; the bytes are still the event that was
            // taken.
            Element::Malformed { text, why: Malformed::NotJson(_) } => {
                Self::unread(&text, Shape::Opaque)
            }
            Element::Malformed { text, .. } => {
                let members =
                    Members::parse(&text).map(|members| members.spans.into()).unwrap_or_default();
                Self { shape: Shape::Custom, members, text }
            }
        }
    }

    fn unread(text: &Arc<str>, shape: Shape) -> Self {
        Self { text: Arc::clone(text), shape, members: Arc::default() }
    }

    /// The same bytes in the shape they are known to have. They are not read again: what was
    /// recalled as opaque text keeps no members, and what becomes such loses them.
    #[must_use]
    pub fn in_shape(self, shape: Shape) -> Self {
        match shape {
            Shape::Opaque => Self::unread(&self.text, Shape::Opaque),
            Shape::CloudEvent | Shape::EventGrid | Shape::Custom => Self { shape, ..self },
        }
    }

    /// The bytes, as published.
    #[must_use]
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// The shape it came in.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// A view of its top-level members; empty for what is no JSON object.
    #[must_use]
    pub fn members(&self) -> Members<'_> {
        Members { text: &self.text, spans: Cow::Borrowed(&self.members) }
    }
}

/// The top-level members of a JSON object, in order, borrowed, every value in its own spelling.
#[derive(Debug, Default)]
pub struct Members<'a> {
    text: &'a str,
    spans: Cow<'a, [Span]>,
}

/// Where a member stands in its text. Kept as long as its event; the places of Lambda's largest
/// payload, were it made of nothing but the shortest members, would be some 30 MB.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    name: Name,
    value: Range<usize>,
}

/// A member's name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Name {
    /// It stands in the text as it is.
    Plain(Range<usize>),
    /// It is written with escapes.
    Escaped(Box<str>),
}

impl Name {
    /// Asked before names are compared: most differ in it.
    fn len(&self) -> usize {
        match self {
            Self::Plain(place) => place.len(),
            Self::Escaped(name) => name.len(),
        }
    }
}

impl<'a> Members<'a> {
    /// Reads the members of an object; other JSON values have none.
    ///
    /// # Errors
    /// [`Malformed`] when the text is not JSON or names a member twice.
    pub fn parse(text: &'a str) -> Result<Self, Malformed> {
        let not_json = |error: serde_json::Error| Malformed::NotJson(error.to_string());
        if !text.trim_start().starts_with('{') {
            return serde_json::from_str::<&RawValue>(text)
                .map(|_| Self::default())
                .map_err(not_json);
        }
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let spans = deserializer.deserialize_map(Spans { text }).map_err(not_json)?;
        deserializer.end().map_err(not_json)?;
        let members = Self { text, spans: Cow::Owned(spans) };
        let mut names: Vec<&str> = members.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Malformed::DuplicateMember(pair[0].to_owned())),
            None => Ok(members),
        }
    }

    /// Name and value of each member, in the publisher's order and spelling.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.spans.iter().map(|span| (self.name(span), &self.text[span.value.clone()]))
    }

    /// The value of a member, as written.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a str> {
        let span = self
            .spans
            .iter()
            .find(|span| span.name.len() == name.len() && self.name(span) == name)?;
        Some(&self.text[span.value.clone()])
    }

    fn name<'s>(&'s self, span: &'s Span) -> &'s str {
        match &span.name {
            Name::Plain(place) => &self.text[place.clone()],
            Name::Escaped(name) => name,
        }
    }

    /// The value of a member that is a string.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(json_text)
    }

    /// The event's id, whatever its shape.
    #[must_use]
    pub fn id(&self) -> Option<Cow<'a, str>> {
        self.text("id")
    }

    /// The event's type: `type`, or `eventType` of the Event Grid schema.
    #[must_use]
    pub fn event_type(&self) -> Option<Cow<'a, str>> {
        self.text("type").or_else(|| self.text("eventType"))
    }

    /// The event's source: `source`, or `topic` of the Event Grid schema.
    #[must_use]
    pub fn source(&self) -> Option<Cow<'a, str>> {
        self.text("source").or_else(|| self.text("topic"))
    }
}

/// The content of a JSON string; nothing for other JSON.
pub(crate) fn json_text(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(raw).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// Reads where the members of this text stand.
struct Spans<'a> {
    text: &'a str,
}

impl<'a> Visitor<'a> for Spans<'a> {
    type Value = Vec<Span>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Vec<Span>, A::Error> {
        let mut spans = Vec::with_capacity(USUAL_MEMBERS);
        while let Some((key, value)) = map.next_entry::<Key<'a>, &RawValue>()? {
            let name = match key.0 {
                Cow::Borrowed(name) => Name::Plain(self.place(name)),
                Cow::Owned(name) => Name::Escaped(name.into()),
            };
            spans.push(Span { name, value: self.place(value.get()) });
        }
        Ok(spans)
    }
}

impl Spans<'_> {
    /// Where a part of the text begins and ends in it. What `serde_json` borrows is such a part.
    fn place(&self, part: &str) -> Range<usize> {
        let begin = part.as_ptr().addr() - self.text.as_ptr().addr();
        debug_assert!(
            self.text.get(begin..begin + part.len()) == Some(part),
            "it is a part of the text"
        );
        begin..begin + part.len()
    }
}

/// A member's name, borrowed unless it holds escapes.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(body: &str, input: Input) -> Vec<Result<(Shape, String), Malformed>> {
        decode(&body.into(), input)
            .into_iter()
            .map(|element| match element {
                Element::Event(event) => Ok((event.shape(), event.text().to_string())),
                Element::Malformed { why, .. } => Err(why),
            })
            .collect()
    }

    const CLOUD_EVENT: &str = r##"{ "specversion":"1.0","id":"1","source":"s","type":"t","dataschema":"#","n":12345678901234567890123,"data":{"a":1,"a":2} }"##;
    const EVENT_GRID: &str = r#"{"id":"1","subject":"s","eventType":"t","eventTime":"2020-08-13T17:18:13.1647262Z","data":{}}"#;

    #[test]
    fn an_event_keeps_its_bytes_and_is_known_by_its_shape() {
        for (body, shape) in [
            (CLOUD_EVENT, Shape::CloudEvent),
            (EVENT_GRID, Shape::EventGrid),
            (r#"{"orderId": 7}"#, Shape::Custom),
            (" 42\n", Shape::Custom),
            (r#""text""#, Shape::Custom),
        ] {
            assert_eq!(decoded(body, Input::Auto), [Ok((shape, body.to_owned()))]);
        }
        assert_eq!(decoded("<xml/>", Input::Opaque), [Ok((Shape::Opaque, "<xml/>".to_owned()))]);
    }

    #[test]
    fn an_array_is_one_event_per_element_and_a_bad_element_spoils_only_itself() {
        let body =
            format!(r#" [{CLOUD_EVENT} , {{"specversion":"9"}},{{"x":1,"x":2}}, {EVENT_GRID}]"#);
        let elements = decoded(&body, Input::Auto);
        assert_eq!(elements[0], Ok((Shape::CloudEvent, CLOUD_EVENT.to_owned())));
        assert!(matches!(elements[1], Err(Malformed::CloudEvent(_))));
        assert_eq!(elements[2], Err(Malformed::DuplicateMember("x".to_owned())));
        assert_eq!(elements[3], Ok((Shape::EventGrid, EVENT_GRID.to_owned())));
        assert_eq!(elements.len(), 4);
    }

    #[test]
    fn a_broken_array_is_one_malformed_record_with_its_whole_text() {
        let body: Arc<str> = r#"[{"a":1},{"#.into();
        let elements = decode(&body, Input::Auto);
        assert!(
            matches!(&elements[..], [Element::Malformed { text, why: Malformed::NotJson(_) }] if *text == body)
        );
    }

    #[test]
    fn what_claims_to_be_a_cloud_event_has_to_be_one() {
        for (body, problem) in [
            (r#"{"specversion":"1.0","id":"","source":"s","type":"t"}"#, "id"),
            (r#"{"specversion":"1.0","id":"1","type":"t"}"#, "source"),
            (r#"{"specversion":"1.0","id":"1","source":"s","type":7}"#, "type"),
            (r#"{"specversion":"0.3","id":"1","source":"s","type":"t"}"#, "specversion"),
            (r#"{"specversion":1.0,"id":"1","source":"s","type":"t"}"#, "specversion"),
            (
                r#"{"specversion":"1.0","id":"1","source":"s","type":"t","data":1,"data_base64":""}"#,
                "exclude",
            ),
            (
                r#"{"specversion":"1.0","id":"1","source":"s","type":"t","data_base64":7}"#,
                "data_base64",
            ),
            (r#"{"specversion":"1.0","id":"1","source":"s","type":"t","x":{}}"#, "attribute x"),
        ] {
            let [Err(Malformed::CloudEvent(why))] = &decoded(body, Input::Auto)[..] else {
                panic!("{body}")
            };
            assert!(why.contains(problem), "{why}");
        }
    }

    #[test]
    fn text_that_is_not_json_is_malformed_whatever_the_input_unless_opaque() {
        for body in ["", "hello", "{", r#"{"a":1} x"#, "[1,", "nul"] {
            for input in [Input::Auto, Input::CloudEvents, Input::EventGrid, Input::Custom] {
                assert!(
                    matches!(&decoded(body, input)[..], [Err(Malformed::NotJson(_))]),
                    "{body} {input:?}"
                );
            }
        }
    }

    #[test]
    fn a_topic_that_names_its_schema_takes_nothing_else() {
        assert!(matches!(
            &decoded(EVENT_GRID, Input::CloudEvents)[..],
            [Err(Malformed::CloudEvent(_))]
        ));
        assert!(matches!(
            &decoded(CLOUD_EVENT, Input::EventGrid)[..],
            [Err(Malformed::EventGrid(_))]
        ));
        assert_eq!(
            decoded(CLOUD_EVENT, Input::Custom),
            [Ok((Shape::Custom, CLOUD_EVENT.to_owned()))]
        );
    }

    #[test]
    fn what_comes_back_from_a_queue_has_the_shape_it_went_with() {
        for (body, input, shape) in [
            (CLOUD_EVENT, Input::Auto, Shape::CloudEvent),
            (EVENT_GRID, Input::Auto, Shape::EventGrid),
            ("<xml/>", Input::Opaque, Shape::Opaque),
            (CLOUD_EVENT, Input::Opaque, Shape::Opaque),
            ("<xml/>", Input::Auto, Shape::Opaque),
            (r#"{"a":1}"#, Input::CloudEvents, Shape::Custom),
        ] {
            assert_eq!(Event::recall(&body.into(), input).shape(), shape, "{body}");
        }
    }

    #[test]
    fn what_comes_back_from_a_queue_has_the_members_that_its_shape_has() {
        let member = |body: &str, input, shape| {
            let event = Event::recall(&body.into(), input).in_shape(shape);
            event.members().get("a").map(ToOwned::to_owned)
        };
        let one = Some("1".to_owned());
        assert_eq!(
            member(r#"{"a":1}"#, Input::CloudEvents, Shape::Custom),
            one,
            "read differently today"
        );
        assert_eq!(member(r#"{"a":1}"#, Input::Auto, Shape::EventGrid), one);
        assert_eq!(member(r#"{"a":1}"#, Input::Auto, Shape::Opaque), None);
        assert_eq!(
            member(r#"{"a":1,"b":2,"b":3}"#, Input::Auto, Shape::Custom),
            None,
            "which b would be meant"
        );
        let opaque = Event::recall(&r#"{"a":1}"#.into(), Input::Opaque);
        assert_eq!(Event::recall(opaque.text(), Input::Auto).in_shape(Shape::Opaque), opaque);
    }

    #[test]
    fn members_are_seen_through_escapes_and_in_order() {
        let members = Members::parse(r#"{"i\u0064":"a\nb","n": 1.50 ,"o":{"x": 1}}"#).unwrap();
        assert_eq!(members.id().as_deref(), Some("a\nb"));
        assert_eq!(members.get("n"), Some("1.50"));
        assert_eq!(members.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["id", "n", "o"]);
        assert!(matches!(
            Members::parse(r#"{"id":1,"i\u0064":2}"#),
            Err(Malformed::DuplicateMember(_))
        ));
    }
}
