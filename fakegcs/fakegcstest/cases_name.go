package fakegcstest

const naming = docs + "objects#naming"

// nameCases returns the facts about the names of objects.
func nameCases() []Case {
	cases := []Case{
		{
			Name: "name-limit", Fact: "The name of an object has up to 1024 bytes.", Source: naming, None: true,
			Steps: []Step{
				insert("{pad:1024}", 0, 9).match(text("name", "{name}{pad:1024}")), read("{pad:1024}?alt=media", small(0, 9)),
				insert("{pad:1025}", 0, 9).status(400),
			},
		}, {
			Name: "name-newline", Fact: "The name of an object has no carriage return or line feed.", Source: naming, None: true,
			Steps: []Step{insert("%0A", 0, 9).status(400), insert("%0D", 0, 9).status(400)},
		}, {
			Name: "name-dots", Fact: `An object can't be named "." or "..".`, Source: naming, None: true,
			Steps: []Step{
				{Method: "POST", Path: "/upload/storage/v1/b/{bucket}/o?uploadType=media&name=.", To: 9, Status: 400},
				{Method: "POST", Path: "/upload/storage/v1/b/{bucket}/o?uploadType=media&name=..", To: 9, Status: 400},
			},
		},
	}
	for _, odd := range []struct{ name, escaped, plain string }{
		{"name-parent", "%2Fa%2F..%2Fb", "/a/../b"},
		{"name-slashes", "%2F%2Fa%2F%2F", "//a//"},
		{"name-trailing-slash", "%2F", "/"},
		{"name-unicode", "%C3%BC%20%E6%97%A5%E6%9C%AC", "ü 日本"},
		{"name-marks", "%23%3F%25%2B%26%3D%2525", "#?%+&=%25"},
		{"name-space", "%20%20a%20", "  a "},
	} {
		cases = append(cases, Case{
			Name: odd.name, Fact: "A name is any Unicode text: nothing in it is special.", Source: naming, None: true,
			Steps: []Step{
				insert(odd.escaped, 0, 9).match("{name}" + quoted(odd.plain) + `"`), get(odd.escaped, 200).match("{name}" + quoted(odd.plain) + `"`),
				read(odd.escaped+"?alt=media", small(0, 9)), del(odd.escaped, 204), get(odd.escaped, 404),
			},
		})
	}
	return cases
}
