package fakegcstest

import (
	"fmt"
	"strings"
)

const composing = docs + "composite-objects"

// composeCases returns the facts about compose.
func composeCases() []Case {
	// compose makes {object} of sources, each a JSON object or a suffix.
	compose := func(sources ...string) Step {
		for i, s := range sources {
			if !strings.HasPrefix(s, "{") {
				sources[i] = fmt.Sprintf(`{"name":"{name}%s"}`, s)
			}
		}
		return sendJSON("POST", objectPath+"/compose", `{"sourceObjects":[`+strings.Join(sources, ",")+`],"destination":{"contentType":"text/x"}}`, 200)
	}
	// asking replaces the destination and adds members to the request.
	asking := func(s Step, destination, more string) Step {
		return s.body(strings.Replace(s.Body, `{"contentType":"text/x"}}`, destination+more+`}`, 1))
	}
	failed := func(s Step) Step { return s.status(412).match(reason("conditionNotMet")) }
	a, b, c := insert("-a", 0, 3), insert("-b", 3, 5), insert("-c", 5, 9)
	return []Case{
		{
			Name: "compose", Fact: "Compose concatenates objects; the result has their number and a crc32c, but no MD5.", Source: composing, Size: 9,
			Steps: []Step{
				a, b, c,
				compose("-a", "-b", "-c").match(
					text("name", "{name}"), text("size", "9"), text("crc32c", "{crc32c:9}"), absent("md5Hash"), field("componentCount", "3\\b"), text("contentType", "text/x"), text("metageneration", "1"),
				),
				get("", 200).match(absent("md5Hash"), field("componentCount", "3\\b")),
				Step{Method: "HEAD", Path: xmlPath, Status: 200, Has: []string{"X-Goog-Component-Count: 3", "X-Goog-Hash: crc32c={crc32c:9}"}},
				get("-a", 200), get("-b", 200), get("-c", 200),
			},
		}, {
			Name: "compose-again", Fact: "A composite may be a source. Its components are counted.", Source: composing, Size: 9,
			Steps: []Step{
				a, b, c, compose("-a", "-b").match(field("componentCount", "2\\b")), compose("", "-c").match(field("componentCount", "3\\b"), text("crc32c", "{crc32c:9}")),
			},
		}, {
			Name: "compose-one", Fact: "One source is enough for compose.", Source: composing, Size: 3,
			Steps: []Step{a, compose("-a").match(field("componentCount", "1\\b"), absent("md5Hash"))},
		}, {
			Name: "compose-32", Fact: "32 sources can be composed, the same one too; 33 can't.", Source: composing, Size: 0,
			Steps: []Step{
				insert("-a", 0, 0), compose(strings.Split(strings.Repeat("-a,", 32)+"-a", ",")...).status(400), get("", 404),
				compose(strings.Split(strings.Repeat("-a,", 31)+"-a", ",")...).match(field("componentCount", "32\\b")),
			},
		}, {
			Name: "compose-none", Fact: "Compose needs a source.", Source: composing, None: true,
			Steps: []Step{compose().status(400)},
		}, {
			Name: "compose-missing", Fact: "Each source of a compose has to be there, and of the generation that is named.", Source: status, None: true,
			Steps: []Step{
				a, compose("-a", "-b").status(404).match(reason("notFound")), compose(`{"name":"{name}-a","generation":"1"}`).status(404),
			},
		}, {
			Name: "compose-source-generation", Fact: "Each source of a compose can have a precondition; numbers may be numbers or strings.", Source: docs + "json_api/v1/objects/compose", Size: 5,
			Steps: []Step{
				a.save("g" + generation), b, failed(compose("-b", `{"name":"{name}-a","objectPreconditions":{"ifGenerationMatch":"1"}}`)),
				failed(compose("-b", `{"name":"{name}-a","objectPreconditions":{"ifGenerationMatch":1}}`)), get("", 404),
				compose(`{"name":"{name}-a","generation":{g},"objectPreconditions":{"ifGenerationMatch":"{g}"}}`, "-b"),
			},
		}, {
			Name: "compose-precondition", Fact: "Compose has preconditions on the object that it replaces.", Source: precond, Size: 3,
			Steps: []Step{
				a, b,
				func() Step { s := compose("-a"); s.Path += "?ifGenerationMatch=0"; return s }(),
				failed(func() Step { s := compose("-a", "-b"); s.Path += "?ifGenerationMatch=0"; return s }()),
				failed(func() Step { s := compose("-a", "-b"); s.Path += "?ifMetagenerationMatch=2"; return s }()),
			},
		}, {
			Name: "compose-crc32c", Fact: "A crc32c in the destination of a compose is a demand.", Source: "https://pkg.go.dev/cloud.google.com/go/storage#Composer", Size: 5,
			Steps: []Step{
				a, b, asking(compose("-a", "-b"), `{"contentType":"text/x","crc32c":"{crc32c:3}"}`, "").status(400), get("", 404),
				asking(compose("-a", "-b"), `{"contentType":"text/x","crc32c":"{crc32c:5}"}`, ""),
			},
		}, {
			Name: "compose-delete-sources", Fact: "Compose with deleteSourceObjects deletes the sources.", Source: docs + "composing-objects", Size: 5,
			Steps: []Step{a, b, asking(compose("-a", "-b"), `{"contentType":"text/x"}`, `,"deleteSourceObjects":true`), get("-a", 404), get("-b", 404)},
		}, {
			Name: "compose-delete-versions", Fact: "deleteSourceObjects bypasses versioning: no noncurrent generation of a source stays.", Source: docs + "composing-objects", Bucket: `{"versioning":{"enabled":true}}`, Size: 3,
			Steps: []Step{
				a, asking(compose("-a"), `{"contentType":"text/x"}`, `,"deleteSourceObjects":true`),
				Step{Method: "GET", Path: "/storage/v1/b/{bucket}/o?versions=true", Status: 200}.match(text("name", "{name}"), `!"{name}-a"`),
			},
		}, {
			Name: "compose-delete-held", Fact: "A compose that would delete a held source fails as a whole.", Source: measured + "src/storage/retention.zig", None: true,
			Steps: []Step{
				a, b, patch("-b", `{"temporaryHold":true}`, 200), asking(compose("-a", "-b"), `{"contentType":"text/x"}`, `,"deleteSourceObjects":true`).status(403),
				get("-a", 200), get("-b", 200),
			},
		}, {
			Name: "compose-classes", Fact: "All sources of a compose and the destination have one storage class, which is the default of the bucket unless it is given.",
			Source: "https://github.com/GoogleCloudPlatform/dotnet-docs-samples/issues/2038", Bucket: `{"storageClass":"STANDARD"}`, Size: 9,
			Steps: []Step{
				a, insertWith("-n", `{"storageClass":"NEARLINE"}`), compose("-a", "-n").status(400).match("different storage classes"), compose("-n").status(400).match("different storage classes"), get("", 404),
				asking(compose("-n"), `{"contentType":"text/x","storageClass":"NEARLINE"}`, "").match(text("storageClass", "NEARLINE")),
			},
		},
	}
}
