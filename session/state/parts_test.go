package state_test

import (
	"math"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/state"
)

// A saved upload in parts is refused unless its parts are those of the file.
func TestPartsOfSavedUpload(t *testing.T) {
	t.Parallel()
	const size = 5 << 20
	for name, change := range map[string]func(*state.Parts){
		"":                     func(*state.Parts) {},
		"no size":              func(p *state.Parts) { p.Size = 0 },
		"not aligned":          func(p *state.Parts) { p.Size++ },
		"the largest size":     func(p *state.Parts) { p.Size, p.List = chunk.Floor(math.MaxInt64), nil },
		"larger than the file": func(p *state.Parts) { p.Size, p.List = size+chunk.Granularity, p.List[:1] },
		"too few":              func(p *state.Parts) { p.List = p.List[:2] },
		"too many":             func(p *state.Parts) { p.List = append(p.List, state.Part{}) },
		"no way":               func(p *state.Parts) { p.Prefix = "" },
		"generation":           func(p *state.Parts) { p.Seen = -1 },
		"an ETag":              func(p *state.Parts) { p.List[0].ETag = "x" },
		"offsets":              func(p *state.Parts) { p.List[0].Committed = 1 },
		"beyond the part": func(p *state.Parts) {
			p.List[2] = state.Part{Generation: 1, Session: state.Session{Committed: 1<<20 + 1, HighWater: 1<<20 + 1}}
		},
		"bytes without session": func(p *state.Parts) { p.List[0].HighWater = 1 },
		"checkpoints":           func(p *state.Parts) { p.List[0].Checkpoints = []chunk.Checkpoint{{Offset: 2}, {Offset: 1}} },
	} {
		parts := &state.Parts{Size: 2 << 20, Prefix: "gcsup-parts/x/", List: make([]state.Part, 3)}
		change(parts)
		_, err := state.Encode(&state.Upload{
			ID: "id", Endpoint: session.DefaultEndpoint, Spec: session.Spec{Bucket: "bkt", Object: "obj"}, Session: state.Session{Created: time.Now()},
			SourcePath: "/file", Source: chunk.Identity{Size: size}, Parts: parts,
		})
		if (err == nil) != (name == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
