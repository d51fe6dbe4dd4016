package session_test

import (
	"math"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// A saved upload in parts is refused unless its parts are those of the file.
func TestPartsOfToken(t *testing.T) {
	t.Parallel()
	const size = 5 << 20
	for name, change := range map[string]func(*session.Parts){
		"":                     func(*session.Parts) {},
		"no size":              func(p *session.Parts) { p.Size = 0 },
		"not aligned":          func(p *session.Parts) { p.Size++ },
		"the largest size":     func(p *session.Parts) { p.Size, p.List = chunk.Floor(math.MaxInt64), nil },
		"larger than the file": func(p *session.Parts) { p.Size, p.List = size+chunk.Granularity, p.List[:1] },
		"too few":              func(p *session.Parts) { p.List = p.List[:2] },
		"too many":             func(p *session.Parts) { p.List = append(p.List, session.Part{}) },
		"no way":               func(p *session.Parts) { p.Prefix = "" },
		"generation":           func(p *session.Parts) { p.Seen = -1 },
		"an ETag":              func(p *session.Parts) { p.List[0].ETag = "x" },
		"offsets":              func(p *session.Parts) { p.List[0].Committed = 1 },
		"beyond the part": func(p *session.Parts) {
			p.List[2] = session.Part{Generation: 1, Committed: 1<<20 + 1, HighWater: 1<<20 + 1}
		},
		"bytes without session": func(p *session.Parts) { p.List[0].HighWater = 1 },
		"checkpoints":           func(p *session.Parts) { p.List[0].Checkpoints = []chunk.Checkpoint{{Offset: 2}, {Offset: 1}} },
	} {
		parts := &session.Parts{Size: 2 << 20, Prefix: "gcsup-parts/x/", List: make([]session.Part, 3)}
		change(parts)
		_, err := session.Encode(&session.Token{
			ID: "id", Endpoint: session.DefaultEndpoint, Spec: session.Spec{Bucket: "bkt", Object: "obj"}, Created: time.Now(),
			SourcePath: "/file", Source: chunk.Identity{Size: size}, Parts: parts,
		})
		if (err == nil) != (name == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
