//! The part of JSON Schema that the project's schemas use.

use serde_json::Value;

/// Checks `value` against the part `rule` of the schema `root`. Knows the words that
/// the schemas use and panics at others, so that none goes unchecked unnoticed.
pub fn check(root: &Value, rule: &Value, value: &Value, path: &str) -> Result<(), String> {
    let err = |what: String| Err(format!("{path}: {what}: {value}"));
    let number = || value.as_f64().unwrap_or(f64::NAN);
    let length = value.as_array().map(|items| items.len() as u64);
    for (word, says) in rule.as_object().unwrap() {
        let fine = match word.as_str() {
            "$schema" | "$id" | "title" | "$defs" => true,
            "$ref" => {
                let pointer = says.as_str().unwrap().strip_prefix('#').unwrap();
                check(root, root.pointer(pointer).unwrap(), value, path)?;
                true
            }
            "oneOf" => {
                let rules = says.as_array().unwrap();
                let results = rules.iter().map(|rule| check(root, rule, value, path));
                let results: Vec<_> = results.collect();
                if results.iter().filter(|result| result.is_ok()).count() != 1 {
                    return err(format!("not exactly one: {results:?}"));
                }
                true
            }
            "type" => match says {
                Value::Array(types) => types.iter().any(|name| is_type(name, value)),
                name => is_type(name, value),
            },
            // All that is used of regular expressions: the beginning, literally.
            "pattern" => {
                let beginning = says.as_str().unwrap().strip_prefix('^').unwrap();
                assert!(
                    beginning
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || c == ':')
                );
                value
                    .as_str()
                    .is_none_or(|text| text.starts_with(beginning))
            }
            "format" => is_format(says, value),
            "const" => says == value,
            "enum" => says.as_array().unwrap().contains(value),
            "minimum" => number() >= says.as_f64().unwrap(),
            "maximum" => number() <= says.as_f64().unwrap(),
            // These words say nothing about values other than lists.
            "minItems" => length.is_none_or(|length| length >= says.as_u64().unwrap()),
            "maxItems" => length.is_none_or(|length| length <= says.as_u64().unwrap()),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, says, item, &format!("{path}[{index}]"))?;
                }
                true
            }
            "required" => {
                let names = says.as_array().unwrap().iter();
                let missing: Vec<_> = names
                    .filter(|name| value.get(name.as_str().unwrap()).is_none())
                    .collect();
                if !missing.is_empty() {
                    return err(format!("lacks {missing:?}"));
                }
                true
            }
            "properties" => {
                for (name, rule) in says.as_object().unwrap() {
                    if let Some(member) = value.get(name) {
                        check(root, rule, member, &format!("{path}.{name}"))?;
                    }
                }
                true
            }
            "additionalProperties" => {
                let known = rule.get("properties").and_then(Value::as_object);
                let is_known = |name| known.is_some_and(|known| known.contains_key(name));
                let object = value.as_object().into_iter().flatten();
                let mut unknown = object.filter(|(name, _)| !is_known(*name));
                match says {
                    Value::Bool(false) => unknown.next().is_none(),
                    rule => {
                        for (name, member) in unknown {
                            check(root, rule, member, &format!("{path}.{name}"))?;
                        }
                        true
                    }
                }
            }
            other => panic!("this test does not know {other:?}"),
        };
        if !fine {
            return err(format!("{word} {says}"));
        }
    }
    Ok(())
}

fn is_type(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("this test does not know the type {other:?}"),
    }
}

/// Whether a string has this format; other values pass.
fn is_format(name: &Value, value: &Value) -> bool {
    assert_eq!(name, "date-time", "this test does not know the format");
    let Some(text) = value.as_str() else {
        return true;
    };
    // RFC 3339 as the project writes it: UTC, with milliseconds.
    let shape = b"dddd-dd-ddTdd:dd:dd.dddZ";
    let fits = |(is, should): (u8, &u8)| match should {
        b'd' => is.is_ascii_digit(),
        other => is == *other,
    };
    text.len() == shape.len() && text.bytes().zip(shape).all(fits)
}
