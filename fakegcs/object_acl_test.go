package fakegcs_test

import (
	"testing"

	"cloud.google.com/go/storage"
)

// TestContexts checks with the official client that contexts are set, changed and
// removed one by one, and that the server sets their times.
func TestContexts(t *testing.T) {
	_, b := official(t, nil)
	o := b.Object("o")
	w := o.NewWriter(t.Context())
	w.Contexts = &storage.ObjectContexts{Custom: map[string]storage.ObjectCustomContextPayload{"a": {Value: "1"}, "b": {Value: "2"}}}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	first := w.Attrs().Contexts.Custom
	if len(first) != 2 || first["a"].Value != "1" || first["a"].CreateTime.IsZero() || first["a"].UpdateTime.IsZero() {
		t.Fatalf("contexts = %+v", first)
	}
	changed, err := o.Update(t.Context(), storage.ObjectAttrsToUpdate{Contexts: &storage.ObjectContexts{
		Custom: map[string]storage.ObjectCustomContextPayload{"a": {Value: "3"}, "b": {Delete: true}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := changed.Contexts.Custom
	if a := got["a"]; len(got) != 1 || a.Value != "3" || !a.CreateTime.Equal(first["a"].CreateTime) || a.UpdateTime.Before(a.CreateTime) {
		t.Errorf("contexts = %+v after %+v", got, first)
	}
}
