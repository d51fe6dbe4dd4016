package fakegcstest

const rewriting = docs + "json_api/v1/objects/rewrite"

// copyTo copies {object} plus source to {object} plus suffix, which may have a
// query.
func copyTo(operation, source, suffix, body string, status int) Step {
	return sendJSON("POST", objectPath+source+"/"+operation+"/b/{bucket}/o/{object}"+suffix, body, status)
}

// copyCases returns the facts about rewriteTo and copyTo.
func copyCases() []Case {
	rewrite := func(source, suffix, body string, status int) Step {
		return copyTo("rewriteTo", source, suffix, body, status)
	}
	const source = `{"contentType":"text/x-media","cacheControl":"no-store","metadata":{"a":"1"}}`
	insertSource := insertWith("-a", source).save("g" + generation)
	failed := func(s Step) Step { return s.status(412).match(reason("conditionNotMet")) }
	return []Case{
		{
			Name: "copy", Fact: "copyTo makes an object of the same bytes and metadata, and answers it.", Source: docs + "json_api/v1/objects/copy", Size: 9,
			Steps: []Step{
				insertSource,
				copyTo("copyTo", "-a", "", `{}`, 200).match(
					text("kind", "storage#object"), text("name", "{name}"), text("size", "9"), text("crc32c", "{crc32c:9}"), text("md5Hash", "{md5:9}"),
					text("contentType", "text/x-media"), text("cacheControl", "no-store"), text("a", "1"), text("metageneration", "1"),
				),
				get("-a", 200).match(text("generation", "{g}")),
			},
		}, {
			Name: "rewrite", Fact: "rewriteTo copies bytes and metadata, and reports its progress. A small object is copied in one request.", Source: rewriting, Size: 9,
			Steps: []Step{
				insertSource,
				rewrite("-a", "", `{}`, 200).match(
					text("kind", "storage#rewriteResponse"), field("done", "true"), text("objectSize", "9"), text("totalBytesRewritten", "9"), absent("rewriteToken"),
					text("name", "{name}"), text("contentType", "text/x-media"), text("a", "1"),
				),
				del("-a", 204),
			},
		}, {
			Name: "rewrite-metadata", Fact: "Metadata that is given to a rewrite is all of the copy's: nothing of the source's is kept.", Source: measured + "docs/storage/writing-objects.md", Size: 9,
			Steps: []Step{
				insertSource, rewrite("-a", "", `{"contentType":"text/y","metadata":{"b":"2"}}`, 200).match(text("contentType", "text/y"), text("b", "2"), absent("a"), absent("cacheControl")),
				get("", 200).match(text("contentType", "text/y"), absent("a")),
			},
		}, {
			Name: "rewrite-class", Fact: "A copy onto itself can change the storage class.", Source: docs + "changing-storage-classes", Size: 9,
			Steps: []Step{
				insert("", 0, 9).save("g" + generation), rewrite("", "", `{"storageClass":"NEARLINE"}`, 200).match(text("storageClass", "NEARLINE"), `!"generation":\s*"{g}"`),
				get("", 200).match(text("storageClass", "NEARLINE"), text("crc32c", "{crc32c:9}")),
			},
		}, {
			Name: "rewrite-default-class", Fact: "A copy without a storage class gets the default of its bucket, not the source's.", Source: measured + "docs/storage/writing-objects.md",
			Bucket: `{"storageClass":"STANDARD"}`, Size: 9,
			Steps: []Step{insertWith("-a", `{"storageClass":"NEARLINE"}`), rewrite("-a", "", `{}`, 200).match(text("storageClass", "STANDARD"))},
		}, {
			Name: "rewrite-source-precondition", Fact: "A rewrite has preconditions on its source, and can name the generation.", Source: rewriting, Size: 9,
			Steps: []Step{
				insertSource, failed(rewrite("-a", "?ifSourceGenerationMatch=1", `{}`, 0)), failed(rewrite("-a", "?ifSourceMetagenerationMatch=2", `{}`, 0)),
				rewrite("-a", "?sourceGeneration=1", `{}`, 404), get("", 404),
				rewrite("-a", "?ifSourceGenerationMatch={g}&ifSourceMetagenerationMatch=1&sourceGeneration={g}", `{}`, 200),
			},
		}, {
			Name: "rewrite-precondition", Fact: "A rewrite has preconditions on the object that it replaces.", Source: rewriting, Size: 5,
			Steps: []Step{
				insertSource, insert("", 0, 5), failed(rewrite("-a", "?ifGenerationMatch=0", `{}`, 0)), failed(rewrite("-a", "?ifGenerationMatch={g}", `{}`, 0)),
			},
		}, {
			Name: "rewrite-missing", Fact: "What isn't there can't be copied.", Source: status, None: true,
			Steps: []Step{rewrite("-a", "", `{}`, 404).match(reason("notFound"))},
		},
	}
}
