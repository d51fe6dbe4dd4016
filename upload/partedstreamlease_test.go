package upload_test

import (
	"io"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/upload"
)

// TestStreamInPartsOutlivesItsLease suspends a machine that sends a stream in parts until its lease expires. Meanwhile, another
// machine begins a stream, or takes the lease to query the upload. In both cases the first machine continues, and makes the object.
func TestStreamInPartsOutlivesItsLease(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for name, look := range map[string]func(w *world, m *machine, id string) error{
		"a stream": func(w *world, m *machine, _ string) error {
			other := spec
			other.Object = "other"
			_, err := m.Reader(w.t.Context(), pieces(data(partedLarge)), other)
			return err
		},
		"a look": func(w *world, m *machine, id string) error {
			_, err := m.Query(w.t.Context(), id)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, &fakegcs.Options{NoMD5: true, Rate: 5 * mib / 2}, func(w *world) {
				inParts := func(o *upload.Options) { streamParts(o); o.ChunkSize = 0 }
				a, b := w.machine("a", inParts), w.machine("b", inParts)
				content := data(partedLarge)
				in, out := io.Pipe()
				ended := make(chan error)
				go func() {
					_, err := a.Reader(w.t.Context(), in, spec)
					ended <- err
				}()
				sent := partedLarge - partedLarge/4
				if _, err := out.Write(content[:sent]); err != nil {
					t.Fatal(err)
				}
				var id string
				for s, err := range b.Saved(w.t.Context()) {
					if id = s.ID; err != nil || !s.ToRemove {
						t.Fatalf("%+v, %v", s, err)
					}
				}
				a.net.suspend()
				time.Sleep(2 * leaseTTL)
				if err := look(w, b, id); err != nil {
					t.Errorf("the other machine: %v", err)
				}
				a.net.wake()
				if _, err := out.Write(content[sent:]); err != nil {
					t.Fatal(err)
				}
				_ = out.Close()
				if err := <-ended; err != nil {
					t.Errorf("the stream: %v\n%s", err, w.trace())
				}
				w.wantObject("obj", content)
				if n := w.multipartUploads(); n != 0 {
					t.Errorf("%d multipart uploads are left", n)
				}
			})
		})
	}
}
