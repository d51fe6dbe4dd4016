package parts

import (
	"context"

	"gcsup/session"
	"gcsup/upload/internal/engine"
)

// compose makes the object of x from those of g.
func compose(ctx context.Context, x *engine.Exchanger, g span, deleteSources bool) session.Reply {
	return x.Plain(ctx, session.OpCompose, func(ctx context.Context, c *session.Client) session.Reply {
		return c.Compose(ctx, x.Spec, g.from, g.crc32c, deleteSources)
	})
}

// removeObject deletes one generation of the object of x.
func removeObject(ctx context.Context, x *engine.Exchanger, generation int64) session.Reply {
	return x.Plain(ctx, session.OpDelete, func(ctx context.Context, c *session.Client) session.Reply {
		return c.DeleteGeneration(ctx, x.Spec, generation)
	})
}

// listParts lists the parts of a multipart upload whose numbers are greater than after.
func listParts(ctx context.Context, x *engine.Exchanger, uri session.URI, after int) (parts []session.UploadedPart, more bool, _ session.Reply) {
	r := x.Plain(ctx, session.OpParts, func(ctx context.Context, c *session.Client) (r session.Reply) {
		parts, more, r = c.ListParts(ctx, x.Spec, uri, after)
		return r
	})
	return parts, more, r
}

func complete(ctx context.Context, x *engine.Exchanger, uri session.URI, parts []session.UploadedPart) session.Reply {
	return x.Plain(ctx, session.OpComplete, func(ctx context.Context, c *session.Client) session.Reply {
		return c.CompleteMultipart(ctx, x.Spec, uri, parts)
	})
}

func abort(ctx context.Context, x *engine.Exchanger, uri session.URI) session.Reply {
	return x.Plain(ctx, session.OpAbort, func(ctx context.Context, c *session.Client) session.Reply { return c.AbortMultipart(ctx, x.Spec, uri) })
}
