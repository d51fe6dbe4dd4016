package fakegcstest

const (
	versioning = docs + "object-versioning"
	softDelete = docs + "soft-delete"
)

// versionCases returns the facts about noncurrent and soft-deleted generations: object versioning and
// soft delete.
func versionCases() []Case {
	const versioned, soft = `{"versioning":{"enabled":true}}`, `{"softDeletePolicy":{"retentionDurationSeconds":"604800"}}`
	list := func(query string) Step {
		return Step{Method: "GET", Path: "/storage/v1/b/{bucket}/o?prefix={object}" + query, Status: 200}
	}
	restore := func(suffix string, status int) Step {
		return sendJSON("POST", objectPath+"/restore"+suffix, ``, status)
	}
	return []Case{
		{
			Name: "versions", Fact: "With versioning, the generation that is replaced stays, and is read by its number.", Source: versioning, Bucket: versioned, Size: 9,
			Steps: []Step{
				insert("", 0, 5).save("g" + generation), insert("", 0, 9).save("h" + generation),
				get("", 200).match(text("generation", "{h}"), absent("timeDeleted")), get("?generation={g}", 200).match(text("generation", "{g}"), text("timeDeleted", "20.*Z")),
				read("?alt=media&generation={g}", small(0, 5)), xmlReq("GET", "?generation={g}", 200).text(small(0, 5)),
				list("").match(text("generation", "{h}"), `!"generation":\s*"{g}"`), list("&versions=true").match(`(?s)"generation":\s*"{g}".*"generation":\s*"{h}"`),
			},
		}, {
			Name: "versions-delete", Fact: "With versioning, a delete makes the object noncurrent; a delete that names a generation deletes it.", Source: versioning, Bucket: versioned, None: true,
			Steps: []Step{
				insert("", 0, 5).save("g" + generation), del("", 204), get("", 404), del("", 404), list("").match(absent("items")),
				list("&versions=true").match(text("generation", "{g}"), text("timeDeleted", "20.*Z")), read("?alt=media&generation={g}", small(0, 5)),
				del("?generation={g}", 204), get("?generation={g}", 404), list("&versions=true").match(absent("items")),
			},
		}, {
			Name: "versions-restore", Fact: "A copy of a noncurrent generation onto its name brings it back.", Source: docs + "using-versioned-objects#restore", Bucket: versioned, Size: 9,
			Steps: []Step{insert("", 0, 9).save("g" + generation), insert("", 0, 5), copyTo("rewriteTo", "", "?sourceGeneration={g}", `{}`, 200).match(`!"generation":\s*"{g}"`)},
		}, {
			Name: "versions-patch", Fact: "The metadata of a noncurrent generation can change.", Source: versioning, Bucket: versioned, Size: 9,
			Steps: []Step{
				insert("", 0, 5).save("g" + generation), insert("", 0, 9), patch("?generation={g}", `{"contentType":"text/x"}`, 200).match(text("generation", "{g}"), text("metageneration", "2")),
				get("", 200).match(text("metageneration", "1")),
			},
		}, {
			Name: "versions-precondition", Fact: "ifGenerationMatch=0 holds when there are noncurrent generations only.", Source: precond, Bucket: versioned, Size: 9,
			Steps: []Step{insert("", 0, 5), del("", 204), insert("&ifGenerationMatch=0", 0, 9)},
		}, {
			Name: "versions-off", Fact: "Without versioning, a generation that is replaced is gone.", Source: versioning, Bucket: `{}`, Size: 9,
			Steps: []Step{insert("", 0, 5).save("g" + generation), insert("", 0, 9), get("?generation={g}", 404), list("&versions=true").match(`!"generation":\s*"{g}"`)},
		}, {
			Name: "soft-delete", Fact: "With soft delete, what was deleted is listed and described apart from the rest.", Source: softDelete, Bucket: soft, None: true,
			Steps: []Step{
				{Method: "GET", Path: bucketPath, Status: 200, Match: []string{text("retentionDurationSeconds", "604800")}},
				insert("", 0, 9).save("g" + generation), list("&softDeleted=true").match(absent("items")), del("", 204), get("", 404), get("?generation={g}", 404),
				list("").match(absent("items")), list("&softDeleted=true").match(text("generation", "{g}"), text("softDeleteTime", "20.*Z"), text("hardDeleteTime", "20.*Z")),
				get("?softDeleted=true&generation={g}", 200).match(text("generation", "{g}"), text("softDeleteTime", "20.*Z")), get("?softDeleted=true&generation=1", 404),
			},
		}, {
			Name: "soft-delete-replace", Fact: "With soft delete, what is replaced is soft-deleted, too.", Source: softDelete, Bucket: soft, Size: 9,
			Steps: []Step{insert("", 0, 5).save("g" + generation), insert("", 0, 9), list("&softDeleted=true").match(text("generation", "{g}"))},
		}, {
			Name: "restore", Fact: "Restore makes a new generation with the metadata of the old one, which can be restored again.", Source: measured + "src/storage/restore.zig", Bucket: soft, Size: 9,
			Steps: []Step{
				insertWith("", `{"metadata":{"a":"1"}}`).save("g" + generation), del("", 204),
				restore("?generation={g}", 200).match(text("a", "1"), text("metageneration", "1"), text("crc32c", "{crc32c:9}"), absent("softDeleteTime"), `!"generation":\s*"{g}"`),
				list("&softDeleted=true").match(text("generation", "{g}")), restore("?generation={g}", 200),
			},
		}, {
			Name: "restore-refused", Fact: "Restore has preconditions on what is live; only a soft-deleted generation can be restored.", Source: measured + "src/storage/restore.zig", Bucket: soft, Size: 5,
			Steps: []Step{
				insert("", 0, 9).save("g" + generation), del("", 204), insert("", 0, 5).save("h" + generation),
				restore("?generation={g}&ifGenerationMatch=0", 412).match(reason("conditionNotMet")), restore("?generation={h}", 404), restore("?generation=1", 404),
			},
		}, {
			Name: "soft-delete-off", Fact: "Without soft delete, nothing soft-deleted can be listed or restored.", Source: measured + "src/storage/restore.zig", Bucket: `{}`, None: true,
			Steps: []Step{
				insert("", 0, 9).save("g" + generation), del("", 204), list("&softDeleted=true").status(400), restore("?generation={g}", 400),
			},
		}, {
			Name: "soft-delete-versions", Fact: "Soft-deleted and noncurrent generations can't be listed together.", Source: listing, Bucket: soft, None: true,
			Steps: []Step{list("&softDeleted=true&versions=true").status(400)},
		},
	}
}
