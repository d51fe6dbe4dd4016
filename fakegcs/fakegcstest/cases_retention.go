package fakegcstest

const (
	holding   = docs + "object-holds"
	retaining = docs + "bucket-lock"
)

// retentionCases returns the facts about holds and retention policies.
func retentionCases() []Case {
	// held is the refusal of a write to a held object. In measurements, the service sent
	// another reason than the documented one.
	held := func(s Step, kind string) Step {
		return s.status(403).match(reason("(objectUnderActiveHold|forbidden)"), "is under active "+kind+" hold and cannot be deleted, overwritten or archived")
	}
	retained := func(s Step) Step { return s.status(403).match(reason("retentionPolicyNotMet")) }
	holds := func(name, kind, fieldName string) Case {
		return Case{
			Name: name, Fact: "An object under a hold is not deleted and not replaced; its metadata can change. A precondition comes first.", Source: holding, None: true,
			Steps: []Step{
				insert("", 0, 9).save("g" + generation), patch("", `{"`+fieldName+`":true}`, 200).match(field(fieldName, "true")),
				held(del("", 0), kind), held(del("?generation={g}", 0), kind), held(insert("", 0, 5), kind), del("?ifGenerationMatch=1", 412),
				patch("", `{"contentType":"text/x"}`, 200).match(text("contentType", "text/x"), field(fieldName, "true")), read("?alt=media", small(0, 9)),
				patch("", `{"`+fieldName+`":false}`, 200).match("!" + field(fieldName, "true")), del("", 204),
			},
		}
	}
	return []Case{
		holds("hold-temporary", "Temporary", "temporaryHold"),
		holds("hold-event-based", "Event-Based", "eventBasedHold"),
		{
			Name: "hold-insert", Fact: "An object can be made with a hold.", Source: holding, Size: 9,
			Steps: []Step{insertWith("", `{"temporaryHold":true}`).match(field("temporaryHold", "true")), held(del("", 0), "Temporary")},
		}, {
			Name: "hold-resumable", Fact: "A resumable upload over a held object is refused when all bytes are there.", Source: measured + "src/storage/retention.zig", Size: 9,
			Steps: []Step{insertWith("", `{"temporaryHold":true}`), start(), held(chunk(0, 5, "5", 0, ""), "Temporary")},
		}, {
			Name: "hold-xml", Fact: "The XML API has a code for a hold.", Source: xmlCodes, Size: 9,
			Steps: []Step{
				insertWith("", `{"temporaryHold":true}`), xmlReq("DELETE", "", 403).match(code("ObjectUnderActiveHold")), xmlReq("PUT", "", 403).bytes(0, 5).match(code("ObjectUnderActiveHold")),
			},
		}, {
			Name: "hold-copy", Fact: "A copy doesn't have the holds of its source, isn't refused for them, and can have its own.", Source: measured + "docs/storage/writing-objects.md", Size: 9,
			Steps: []Step{
				insertWith("-a", `{"temporaryHold":true}`), copyTo("rewriteTo", "-a", "", `{}`, 200).match(`!` + field("temporaryHold", "true")),
				held(copyTo("rewriteTo", "", "-a", `{}`, 0), "Temporary"),
				copyTo("rewriteTo", "-a", "-b", `{"contentType":"text/x","temporaryHold":true}`, 200).match(field("temporaryHold", "true")),
			},
		}, {
			Name: "hold-default", Fact: "In a bucket with a default event-based hold, each new object has one.", Source: holding + "#default-hold", Bucket: `{"defaultEventBasedHold":true}`, None: true,
			Steps: []Step{
				{Method: "GET", Path: bucketPath, Status: 200, Match: []string{field("defaultEventBasedHold", "true")}},
				insert("", 0, 9).match(field("eventBasedHold", "true")), held(del("", 0), "Event-Based"), patch("", `{"eventBasedHold":false}`, 200), del("", 204),
			},
		}, {
			Name: "hold-versions", Fact: "A hold also keeps an object from becoming noncurrent.", Source: measured + "src/storage/retention.zig",
			Bucket: `{"versioning":{"enabled":true}}`, Size: 9,
			Steps: []Step{insert("", 0, 9), patch("", `{"temporaryHold":true}`, 200), held(del("", 0), "Temporary"), held(insert("", 0, 5), "Temporary")},
		}, {
			Name: "retention", Fact: "Under a retention policy an object is not deleted and not replaced before its time; its metadata can change.", Source: retaining,
			Bucket: `{"retentionPolicy":{"retentionPeriod":"3600"}}`, Size: 9,
			Steps: []Step{
				{Method: "GET", Path: bucketPath, Status: 200, Match: []string{text("retentionPeriod", "3600"), text("effectiveTime", "20.*")}},
				insert("", 0, 9).match(text("retentionExpirationTime", "20.*Z")), retained(del("", 0)), retained(insert("", 0, 5)), del("?ifGenerationMatch=1", 412),
				patch("", `{"contentType":"text/x"}`, 200), xmlReq("DELETE", "", 403).match(code("RetentionPolicyNotMet")),
			},
		}, {
			Name: "retention-present", Fact: "A retention policy counts for objects that are there, and lets them go when it is taken away.", Source: retaining, Bucket: `{}`, None: true,
			Steps: []Step{
				insert("", 0, 9).match(absent("retentionExpirationTime")), sendJSON("PATCH", bucketPath, `{"retentionPolicy":{"retentionPeriod":"3600"}}`, 200),
				get("", 200).match(text("retentionExpirationTime", "20.*Z")).settle(), retained(del("", 0)),
				sendJSON("PATCH", bucketPath, `{"retentionPolicy":null}`, 200).match(absent("retentionPolicy")), del("", 204).settle(),
			},
		}, {
			Name: "retention-event", Fact: "The retention of an object begins when its event-based hold ends.", Source: holding, Bucket: `{"retentionPolicy":{"retentionPeriod":"3600"}}`, Size: 9,
			Steps: []Step{
				insert("", 0, 9), patch("", `{"eventBasedHold":true}`, 200).match(absent("retentionExpirationTime")),
				patch("", `{"eventBasedHold":false}`, 200).match(text("retentionExpirationTime", "20.*Z")), retained(del("", 0)),
			},
		}, {
			Name: "retention-temporary", Fact: "A temporary hold doesn't change the retention of an object.", Source: holding, Bucket: `{"retentionPolicy":{"retentionPeriod":"3600"}}`, Size: 9,
			Steps: []Step{
				insert("", 0, 9).save(`t="retentionExpirationTime":\s*"([^"]*)"`), patch("", `{"temporaryHold":true}`, 200).match(text("retentionExpirationTime", "{t}")),
				held(del("", 0), "Temporary"), patch("", `{"temporaryHold":false}`, 200).match(text("retentionExpirationTime", "{t}")),
			},
		}, {
			Name: "retention-versions", Fact: "With versioning, a retained object may become noncurrent, and is retained as such.", Source: measured + "docs/storage/buckets.md",
			Bucket: `{"versioning":{"enabled":true},"retentionPolicy":{"retentionPeriod":"3600"}}`, Size: 9,
			Steps: []Step{insert("", 0, 5).save("g" + generation), insert("", 0, 9), retained(del("?generation={g}", 0)), read("?alt=media&generation={g}", small(0, 5))},
		}, {
			Name: "retention-period", Fact: "A retention period of 0 is refused; an empty policy changes nothing.", Source: measured + "src/storage/fake_buckets.zig", Bucket: `{"retentionPolicy":{"retentionPeriod":"3600"}}`, None: true,
			Steps: []Step{
				sendJSON("PATCH", bucketPath, `{"retentionPolicy":{"retentionPeriod":"0"}}`, 400), sendJSON("PATCH", bucketPath, `{"retentionPolicy":{}}`, 200).match(text("retentionPeriod", "3600")),
			},
		},
	}
}
