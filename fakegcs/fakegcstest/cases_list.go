package fakegcstest

import "strings"

const listing = docs + "json_api/v1/objects/list"

// listCases returns the facts about listings.
func listCases() []Case {
	fill := func(names ...string) []Step {
		var steps []Step
		for _, name := range names {
			steps = append(steps, insert("%2F"+strings.ReplaceAll(name, "/", "%2F"), 0, 3))
		}
		return steps
	}
	list := func(query string) Step { return Step{Method: "GET", Path: listPath + query, Status: 200} }
	// names matches a listing with exactly these items, in this order.
	names := func(names ...string) string {
		re := `(?s)^` + strings.Repeat(`.*"name":\s*"{name}/%"`, len(names))
		for _, name := range names {
			re = strings.Replace(re, "%", name, 1)
		}
		return re
	}
	only := func(s Step, all ...string) Step {
		s = s.match(names(all...))
		return s.match(`!` + `(?s)` + strings.Repeat(`"name":.*`, len(all)+1))
	}
	return []Case{
		{
			Name: "list", Fact: "A listing has the objects of a prefix, sorted by name.", Source: listing, None: true,
			Steps: append(fill("b/2", "c", "a", "b/1"),
				only(list(""), "a", "b/1", "b/2", "c").match(text("kind", "storage#objects"), absent("nextPageToken"), absent("prefixes")),
				only(list("b"), "b/1", "b/2"), list("x").match(absent("items"), text("kind", "storage#objects")),
			),
		}, {
			Name: "list-delimiter", Fact: "In a listing with a delimiter, names that continue after it are one prefix.", Source: listing, None: true,
			Steps: append(fill("a", "b/", "b/1", "b/2", "c", "d/1"),
				only(list("&delimiter=%2F"), "a", "c").match(field("prefixes", `\[\s*"{name}/b/",\s*"{name}/d/"\s*\]`)),
				only(list("&delimiter=%2F&includeTrailingDelimiter=true"), "a", "b/", "c").match(field("prefixes", `\[\s*"{name}/b/",\s*"{name}/d/"\s*\]`)),
			),
		}, {
			Name: "list-pages", Fact: "A page of a listing has at most maxResults objects and prefixes, and a token for the next.", Source: listing, None: true,
			Steps: append(fill("a", "b/1", "b/2", "c"),
				only(list("&maxResults=3"), "a", "b/1", "b/2").save("t"+nextPage), only(list("&maxResults=3&pageToken={t}"), "c").match(absent("nextPageToken")),
				only(list("&maxResults=2&delimiter=%2F"), "a").match(field("prefixes", `\[\s*"{name}/b/"\s*\]`)).save("t"+nextPage),
				only(list("&maxResults=2&delimiter=%2F&pageToken={t}"), "c").match(absent("prefixes"), absent("nextPageToken")),
			),
		}, {
			Name: "list-offsets", Fact: "In a listing, startOffset is the first name, and endOffset is not part of it.", Source: listing, None: true,
			Steps: append(fill("a", "b", "c", "d"), only(list("&startOffset={object}%2Fb&endOffset={object}%2Fd"), "b", "c")),
		}, {
			Name: "list-fields", Fact: "In a listing, fields gives a part of each object.", Source: partial, None: true,
			Steps: append(fill("a", "b"), only(list("&fields=items(name,size)"), "a", "b").match(text("size", "3"), absent("kind"), absent("bucket"), absent("generation")),
				only(list("&fields=items/name"), "a", "b").match(absent("size"))),
		}, {
			Name: "list-glob", Fact: "A listing by a glob pattern has the names that match as a whole; * does not match a slash.", Source: listing + "#list-objects-and-prefixes-using-glob", None: true,
			Steps: append(fill("ab", "abc", "b/ab", "b/c/ab", "x-1"),
				only(list("&matchGlob={object}%2Fa*"), "ab", "abc"), only(list("&matchGlob={object}%2F**ab"), "ab", "b/ab", "b/c/ab"), only(list("&matchGlob=**/ab"), "ab", "b/ab", "b/c/ab"), only(list("&matchGlob={object}%2Fab%3F"), "abc"),
				only(list("&matchGlob={object}%2Fx-%5B0-9%5D"), "x-1"), only(list("&matchGlob={object}%2Fx-%5B!0-9%5D")), only(list("&matchGlob={object}%2F{abc,x-1}"), "abc", "x-1"),
				list("&matchGlob={object}%2F%5Ba").status(400).match(reason("invalid")),
			),
		}, {
			Name: "list-no-bucket", Fact: "A bucket that isn't there can't be listed.", Source: status, None: true,
			Steps: []Step{{Method: "GET", Path: "/storage/v1/b/no-such-bucket-for-conformance/o", Status: 404, Match: []string{reason("notFound")}}},
		},
	}
}
