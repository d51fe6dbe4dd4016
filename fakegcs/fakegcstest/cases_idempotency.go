package fakegcstest

const tokens = measured + "src/storage/idempotency.zig"

// token returns a header with an idempotency token, another one for each n.
func token(n string) string { return "X-Goog-Gcs-Idempotency-Token: {token:" + n + "}" }

// idempotencyCases returns the facts about idempotency tokens.
func idempotencyCases() []Case {
	compose := sendJSON("POST", objectPath+"-c/compose", `{"sourceObjects":[{"name":"{name}"}]}`, 200).with(token("1"))
	return []Case{
		{
			Name: "token-insert", Fact: "An insert that is repeated with its idempotency token is not executed again: the reply is the first one.", Source: tokens, Size: 9,
			Steps: []Step{
				insert("", 0, 9).with(token("1")).save("g" + generation),
				insert("", 0, 9).with(token("1")).match(text("generation", "{g}")), get("", 200).match(text("generation", "{g}")),
				insert("", 0, 9).with(token("2")).match(`!"{g}"`),
			},
		}, {
			Name: "token-insert-late", Fact: "The repeat of an insert does not replace what another client wrote in between.", Source: tokens, Size: 9,
			Steps: []Step{
				insert("", 0, 5).with(token("1")).save("g" + generation), insert("", 0, 9),
				insert("", 0, 5).with(token("1")).match(text("generation", "{g}")), get("", 200).match(`!"{g}"`),
			},
		}, {
			Name: "token-insert-new", Fact: "An insert that must not replace an object can be repeated with its token: its own object does not count.", Source: tokens, Size: 9,
			Steps: []Step{
				insert("&ifGenerationMatch=0", 0, 9).with(token("1")), insert("&ifGenerationMatch=0", 0, 9).with(token("1")),
				insert("&ifGenerationMatch=0", 0, 9).with(token("2")).status(412),
			},
		}, {
			Name: "token-other-body", Fact: "The body of a request with the token of an earlier one is ignored.", Source: tokens, Size: 9,
			Steps: []Step{insert("", 0, 9).with(token("1")), insert("", 0, 5).with(token("1")).match(text("size", "9"))},
		}, {
			Name: "token-other-object", Fact: "A request for another object with the same token is executed.", Source: measured + "src/storage/fake_multipart.zig", Size: 9,
			Steps: []Step{insert("", 0, 9).with(token("1")), insert("-a", 0, 5).with(token("1")).match(text("size", "5")), read("-a?alt=media", small(0, 5))},
		}, {
			Name: "token-refused", Fact: "A request that failed is executed when it is repeated with its token.", Source: tokens, Size: 9,
			Steps: []Step{
				insert("", 0, 5), insert("&ifGenerationMatch=0", 0, 9).with(token("1")).status(412), del("", 204),
				insert("&ifGenerationMatch=0", 0, 9).with(token("1")),
			},
		}, {
			Name: "token-delete", Fact: "A delete that is repeated with its token deletes no other object.", Source: tokens, Size: 9,
			Steps: []Step{insert("", 0, 5), del("", 204).with(token("1")), insert("", 0, 9), del("", 204).with(token("1")), get("", 200)},
		}, {
			Name: "token-patch", Fact: "A patch that is repeated with its token changes nothing.", Source: tokens, Size: 9,
			Steps: []Step{
				insert("", 0, 9), patch("", `{"contentType":"text/x"}`, 200).with(token("1")), patch("", `{"contentType":"text/y"}`, 200),
				patch("", `{"contentType":"text/x"}`, 200).with(token("1")).match(text("metageneration", "2")), get("", 200).match(text("contentType", "text/y"), text("metageneration", "3")),
			},
		}, {
			Name: "token-start", Fact: "Each start of a session with the same token makes another session.", Source: tokens, None: true,
			Steps: []Step{
				start(token("1")), {Method: "DELETE", Status: 499}, start(token("1")).save(`s=[?&]upload_id=([^&\s]+)`),
				query("*", 308, "none").on(startPath + "&upload_id={s}"),
			},
		}, {
			Name: "token-compose", Fact: "A compose is executed each time, even with the same token.", Source: tokens, Size: 9,
			Steps: []Step{insert("", 0, 9), compose.save("g" + generation), compose.match(`!"{g}"`)},
		},
	}
}
