//! A pipeline's report as JSON, which `docs/reference/result.md` describes.

use serde_json::{Map, Value, json};

use super::report::{PipelineOutput, PipelineReport};
use crate::buffer::Figures;

impl PipelineReport {
    /// The report as a JSON object, without any data. A stage is the report of a run, with its
    /// judgement.
    ///
    /// ```
    /// use procwright::Command;
    ///
    /// let output = Command::new("true").pipe(Command::new("false")).run()?;
    /// let json = output.report.to_json();
    /// assert_eq!(json["success"], false);
    /// assert_eq!(json["stages"][1]["judgement"], "failed");
    /// assert_eq!(json["stages"][1]["status"]["code"], 1);
    /// # Ok::<(), procwright::pipeline::Error>(())
    /// ```
    pub fn to_json(&self) -> Value {
        let stages = self.stages.iter().map(|stage| {
            let mut value = stage.report.to_json();
            value["judgement"] = stage.judgement.name().into();
            value["elastic"] = stage.elastic.as_ref().map_or(Value::Null, figures);
            if let Some(fan) = &stage.fan {
                value["fan"] = figures(fan);
            }
            if let Some(function) = stage.function {
                value["function"] = json!({
                    "end": function.end.name(),
                    "judgement": function.judgement.name(),
                });
            }
            value
        });
        json!({
            "success": self.success(),
            "rule": self.rule.name(),
            "reason": self.reason.name(),
            "outcome": self.outcome(),
            "duration_s": self.duration.as_secs_f64(),
            "stages": stages.collect::<Vec<_>>(),
        })
    }
}

/// The figures of a buffer whose pipeline is over.
fn figures(figures: &Figures) -> Value {
    let counts = figures.counts_at_the_end().into_iter();
    let mut object: Map<_, _> = counts
        .map(|(name, bytes)| (name.into(), bytes.into()))
        .collect();
    object.insert("blocked_s".into(), figures.refused.as_secs_f64().into());
    Value::Object(object)
}

impl PipelineOutput {
    /// The whole result as a JSON object: `stdout` is the last stage's, or that of each
    /// program of a fan, `stderr` each stage's own. What is not UTF-8 is base64, as `{"base64": "…"}`.
    pub fn to_json(&self) -> Value {
        let mut value = self.report.to_json();
        let last = self.report.stages.len() - 1 - self.beside.len();
        for (place, stage) in self.report.stages.iter().enumerate() {
            let report = &stage.report;
            let stdout =
                (place >= last && report.stdout_info.is_some()).then(|| self.stdout_of(place));
            let stderr = report.stderr_info.is_some().then(|| &*self.stderr[place]);
            let data = |bytes: &[u8]| crate::run::bytes_to_json(bytes);
            let own = &mut value["stages"][place];
            own["stdout"] = stdout.map_or(Value::Null, data);
            own["stderr"] = stderr.map_or(Value::Null, data);
        }
        value
    }
}
