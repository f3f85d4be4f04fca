//! [`Fields`]: reads the fields of a mapping, and reports those that were not read.
//!
//! This module is separate from the cursor because it has state: it must record which fields were
//! read.

use std::cell::RefCell;

use super::super::findings::{Message, Severity, quoted};
use super::super::hint::hint;
use super::super::node::{Key, Node, Value};
use super::cursor::Cursor;

/// The fields of a mapping, and the names that were read.
pub struct Fields<'a> {
    mapping: Cursor<'a>,
    entries: &'a [(Key, Node)],
    /// The mappings that supply missing fields, in order of precedence.
    bases: Vec<Cursor<'a>>,
    asked: RefCell<Vec<&'a str>>,
}

impl<'a> Fields<'a> {
    /// Returns the fields of a mapping. All of them count as unknown until they are read.
    pub fn new(mapping: Cursor<'a>, entries: &'a [(Key, Node)], bases: Vec<Cursor<'a>>) -> Self {
        Self { mapping, entries, bases, asked: RefCell::default() }
    }

    fn find(&self, name: &'static str) -> Option<&'a (Key, Node)> {
        self.asked.borrow_mut().push(name);
        self.entries.iter().find(|(key, _)| key.value == name)
    }

    /// Returns a cursor at the mapping itself.
    pub fn parent(&self) -> &Cursor<'a> {
        &self.mapping
    }

    /// Marks these fields as known, because other code reads them.
    pub fn accept(&self, names: &[&'static str]) {
        self.asked.borrow_mut().extend(names);
    }

    /// Marks every field as known, so that none is reported as unknown.
    pub fn accept_rest(&self) {
        self.asked.borrow_mut().extend(self.entries.iter().map(|(key, _)| key.value.as_str()));
    }

    /// Returns the field if this mapping itself contains it; bases are ignored.
    pub fn own(&self, name: &'static str) -> Option<Cursor<'a>> {
        self.find(name).map(|(key, node)| self.mapping.child(key, node))
    }

    /// Returns the field of the first base in which it is neither missing nor `null`.
    pub fn of_base(&self, name: &str) -> Option<Cursor<'a>> {
        self.stated_by_bases(name).next()
    }

    fn stated_by_bases(&self, name: &str) -> impl Iterator<Item = Cursor<'a>> {
        let stated = self.bases.iter().filter_map(move |base| base.peek(name));
        stated.filter(|cursor| !cursor.is_null())
    }

    /// Returns the mappings that supply missing fields to the mapping at `at`, which is a value of
    /// this field. They are the values of the field in documents with lower precedence.
    pub fn bases_of(&self, name: &str, at: &Cursor<'a>) -> Vec<Cursor<'a>> {
        let is_same = |cursor: &Cursor<'a>| std::ptr::eq(cursor.node, at.node);
        let all = self.entry(name).into_iter().chain(self.stated_by_bases(name));
        all.skip_while(|cursor| !is_same(cursor)).skip(1).filter(Cursor::is_mapping).collect()
    }

    fn entry(&self, name: &str) -> Option<Cursor<'a>> {
        let (key, node) = self.entries.iter().find(|(key, _)| key.value == name)?;
        Some(self.mapping.child(key, node))
    }

    /// Returns a cursor at this mapping, followed by cursors at the bases.
    pub fn documents(&self) -> Vec<Cursor<'a>> {
        std::iter::once(&self.mapping).chain(&self.bases).cloned().collect()
    }

    /// Returns the field of this mapping, or of the first base that states it.
    pub fn get(&self, name: &'static str) -> Option<Cursor<'a>> {
        self.own(name).or_else(|| self.of_base(name))
    }

    /// Returns the field of this mapping, or of the first base in which it is not `null`. Exported
    /// resources have `null` for absent fields.
    pub fn given(&self, name: &'static str) -> Option<Cursor<'a>> {
        let own = self.own(name);
        let base = self.of_base(name);
        if let (Some(own), Some(base)) = (own.as_ref().filter(|own| own.is_null()), &base)
            && self.mapping.unknown == Severity::Error
            && base.is_stated()
        {
            let message = format!("null has no effect: the value at {} applies", base.location());
            own.warn(Message::new(message).help(format!("omit {name}, or set another value")));
        }
        own.filter(|own| !own.is_null()).or(base)
    }

    /// Returns the field if this mapping itself contains it. Otherwise reports a missing field at
    /// the position of the mapping.
    pub fn required(&self, name: &'static str) -> Option<Cursor<'a>> {
        self.own(name).or_else(|| self.report_missing(name))
    }

    /// Reports a missing field at the position of the mapping, and returns `None`.
    pub fn report_missing<T>(&self, name: &'static str) -> Option<T> {
        let missing = Cursor { field: self.mapping.path_to(name), ..self.mapping.clone() };
        missing.refuse(format!("{name} is missing"))
    }

    /// Reads the field with `read`; returns `None` if the field does not exist.
    pub fn read<T>(
        &self,
        name: &'static str,
        read: impl FnOnce(&Cursor<'a>) -> Option<T>,
    ) -> Option<T> {
        self.get(name).and_then(|cursor| read(&cursor))
    }

    /// Returns true if the field is the boolean `true`. Reports a value that is not a boolean.
    pub fn is_true(&self, name: &'static str) -> bool {
        self.given(name).and_then(|cursor| cursor.boolean()).unwrap_or(false)
    }

    /// Reads a field whose value is a mapping; `null` counts as absent.
    pub fn section<T>(&self, name: &'static str, read: impl FnOnce(&Fields<'a>) -> T) -> Option<T> {
        self.given(name)?.mapping(read)
    }

    /// Returns a cursor whose findings point to the key of a field, not to its value.
    pub fn key(&self, name: &'static str) -> Option<Cursor<'a>> {
        let (key, node) = self.find(name)?;
        Some(Cursor { position: key.position, ..self.mapping.child(key, node) })
    }

    /// Returns a cursor whose findings point to the key of a field. Returns `None` if this mapping
    /// lacks the field, or if the value is `null` here and in all bases.
    pub fn given_key(&self, name: &'static str) -> Option<Cursor<'a>> {
        self.given(name).and_then(|_| self.key(name))
    }

    /// Reports an unknown field for each field that no code has read.
    pub fn report_unknown(&self) {
        let mut known = self.asked.take();
        known.sort_unstable();
        known.dedup();
        // Exports in other formats have `null` for everything that a resource does not state.
        let is_absent = |node: &Node| {
            self.mapping.unknown == Severity::Warning && matches!(node.value, Value::Null)
        };
        let is_unknown =
            |(key, node): &&(Key, Node)| !known.contains(&key.value.as_str()) && !is_absent(node);
        for (key, _) in self.entries.iter().filter(is_unknown) {
            let (position, field) = (key.position, self.mapping.path_to(&key.value));
            let at = Cursor { position, field, ..self.mapping.clone() };
            if key.value.starts_with("//") || key.value.starts_with("/*") {
                // This is always an error, because a JSON comment in YAML may hide a field such as
                // a filter, which would then be missing.
                let message =
                    "YAML has no // or /* comments: this text is part of the following field name";
                at.error(Message::new(message).help("use # comments, or a separate .json file"));
                continue;
            }
            let message = format!("unknown field {}", quoted(&key.value));
            at.report(self.mapping.unknown, Message::new(message).help(hint(&key.value, &known)));
        }
    }
}

impl<'a> Cursor<'a> {
    /// Reads a mapping with `read`. Fields that `read` does not read are reported as unknown.
    pub fn mapping<T>(&self, read: impl FnOnce(&Fields<'a>) -> T) -> Option<T> {
        self.mapping_over(&[], read)
    }

    /// Reads a mapping with `read`. The mappings `bases` supply fields that are missing in it.
    pub fn mapping_over<T>(
        &self,
        bases: &[Self],
        read: impl FnOnce(&Fields<'a>) -> T,
    ) -> Option<T> {
        let fields = Fields::new(self.clone(), self.map()?, bases.to_vec());
        let value = read(&fields);
        fields.report_unknown();
        Some(value)
    }
}
