package fakegcstest

const moving = docs + "json_api/v1/objects/move"

// moveCases returns the facts about moveTo.
func moveCases() []Case {
	move := func(source, suffix string, status int) Step {
		return Step{Method: "POST", Path: objectPath + source + "/moveTo/o/{object}" + suffix, Status: status}
	}
	failed := func(s Step) Step { return s.status(412).match(reason("conditionNotMet")) }
	return []Case{
		{
			Name: "move", Fact: "A move gives an object another name, with the same bytes and metadata, and a new generation.", Source: moving, Bucket: `{}`, Size: 9,
			Steps: []Step{
				insertWith("-a", `{"contentType":"text/x-media","metadata":{"a":"1"}}`).save("g" + generation), patch("-a", `{"cacheControl":"no-store"}`, 200),
				move("-a", "", 200).match(text("kind", "storage#object"), text("name", "{name}"), text("contentType", "text/x-media"), text("a", "1"), text("cacheControl", "no-store"), text("metageneration", "1"), `!"generation":\s*"{g}"`),
				get("-a", 404),
			},
		}, {
			Name: "move-replaces", Fact: "A move replaces the object that has the name, unless a precondition forbids it.", Source: moving, Bucket: `{}`, Size: 9,
			Steps: []Step{
				insert("-a", 0, 9), insert("", 0, 5), failed(move("-a", "?ifGenerationMatch=0", 0)), failed(move("-a", "?ifSourceGenerationMatch=1", 0)),
				failed(move("-a", "?ifSourceMetagenerationMatch=2", 0)), move("-a", "", 200), get("-a", 404),
			},
		}, {
			Name: "move-itself", Fact: "An object isn't moved to its own name.", Source: moving, Bucket: `{}`, Size: 9,
			Steps: []Step{insert("", 0, 9), move("", "", 400).match(reason("invalid"))},
		}, {
			Name: "move-missing", Fact: "What isn't there can't be moved.", Source: status, Bucket: `{}`, None: true,
			Steps: []Step{move("-a", "", 404).match(reason("notFound"))},
		}, {
			Name: "move-held", Fact: "An object under a hold isn't moved.", Source: holding, Bucket: `{}`, None: true,
			Steps: []Step{insertWith("-a", `{"temporaryHold":true}`), move("-a", "", 403), get("-a", 200), patch("-a", `{"temporaryHold":false}`, 200)},
		}, {
			Name: "move-soft-delete", Fact: "A move doesn't soft-delete its source.", Source: moving, Bucket: `{"softDeletePolicy":{"retentionDurationSeconds":"604800"}}`, Size: 9,
			Steps: []Step{insert("-a", 0, 9), move("-a", "", 200), {Method: "GET", Path: listPath + "&softDeleted=true", Status: 200, Match: []string{absent("items")}}},
		},
	}
}
