package envai

import (
	"context"
	"iter"
	"slices"
	"time"
)

const pollCeiling = 10 * time.Second

// ForkResult is a fork; Chat is the destination that was created, yours to keep.
type ForkResult struct {
	Chat         *Chat
	SourceChatID string
}

// ForkChat creates a chat and forks chatID into it. If only the fork fails, the new chat is kept: see ForkFailedError.
func (s *ChatsService) ForkChat(ctx context.Context, workspaceID, chatID, teamID string) (*ForkResult, error) {
	chat, err := s.Create(ctx, workspaceID, teamID)
	if err != nil {
		return nil, err
	}
	forked, err := s.Fork(ctx, chatID, chat.ID)
	if err != nil {
		failed := &ForkFailedError{Chat: chat, Cause: err}
		if base := baseOf(err); base != nil {
			failed.EnvaiError = *base
		}
		return nil, failed
	}
	return &ForkResult{chat, forked.SourceChatID}, nil
}

// GenerateAndWait generates and polls until the record is settled, in whatever way. interval grows to 10 s; bound ctx.
func (s *ImagesService) GenerateAndWait(ctx context.Context, params CreateImageGenerationParams, interval time.Duration) (*ImageGenerationStatusRecord, error) {
	accepted, err := s.Generate(ctx, params)
	if err != nil {
		return nil, err
	}
	settled := []string{"succeeded", "failed", "cancelled", "canceled", "completed"}
	for n := 1; ; n++ {
		if err := sleep(ctx, s.client.clock, backoff(interval, pollCeiling, n)); err != nil {
			return nil, err
		}
		status, err := s.GetGeneration(ctx, accepted.ID)
		if err != nil || slices.Contains(settled, status.Status) {
			return status, err
		}
	}
}

// Wait polls an attachment until nothing is being converted, nor will be by itself. interval grows to 10 s; bound ctx.
func (s *AttachmentsService) Wait(ctx context.Context, workspaceID, chatID, attachmentID string, interval time.Duration) (*ChatAttachment, error) {
	for n := 1; ; n++ {
		found, err := s.Get(ctx, workspaceID, chatID, attachmentID)
		if err != nil {
			return nil, err
		}
		state := found.Conversion
		if state.Status != "queued" && state.Status != "running" && !state.Recoverable {
			return found, nil
		}
		if err := sleep(ctx, s.client.clock, backoff(interval, pollCeiling, n)); err != nil {
			return nil, err
		}
	}
}

// CompletionPage is one page of completions, and how to get those that follow.
type CompletionPage struct {
	CompletionCollection
	service             *CompletionsService
	workspaceID, chatID string
	params              ListCompletionsParams
	options             []CallOption
}

// List is listCompletions: GET /workspaces/{workspace_id}/chats/{chat_id}/completions
//
// It gives a page; its All iterates over its completions and those of the pages that follow.
func (s *CompletionsService) List(ctx context.Context, workspaceID, chatID string, params ListCompletionsParams, options ...CallOption) (*CompletionPage, error) {
	page, err := callOne[CompletionCollection](ctx, s.client, operations["listCompletions"], []string{workspaceID, chatID}, params, options)
	if err != nil {
		return nil, err
	}
	return &CompletionPage{*page, s, workspaceID, chatID, params, options}, nil
}

// HasNext reports whether a page follows.
func (p *CompletionPage) HasNext() bool {
	more := p.Links.Next != nil && *p.Links.Next != ""
	if last := p.Meta.LastPage; last != nil {
		more = more || p.number() < *last
	}
	return len(p.Data) > 0 && more
}

func (p *CompletionPage) number() int64 {
	number, given := p.params.Page.Get()
	if !given {
		return 1
	}
	return number
}

// Next is the page after this one, nil after the last.
func (p *CompletionPage) Next(ctx context.Context) (*CompletionPage, error) {
	if !p.HasNext() {
		return nil, nil
	}
	params := p.params
	params.Page = Set(p.number() + 1)
	return p.service.List(ctx, p.workspaceID, p.chatID, params, p.options...)
}

// All iterates over the completions of this page and of those that follow. An error is the last thing it gives.
func (p *CompletionPage) All(ctx context.Context) iter.Seq2[*Completion, error] {
	return func(yield func(*Completion, error) bool) {
		page, err := p, error(nil)
		for page != nil {
			for i := range page.Data {
				if !yield(&page.Data[i], nil) {
					return
				}
			}
			if page, err = page.Next(ctx); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// All iterates over every completion, page by page.
func (s *CompletionsService) All(ctx context.Context, workspaceID, chatID string, params ListCompletionsParams, options ...CallOption) iter.Seq2[*Completion, error] {
	return func(yield func(*Completion, error) bool) {
		params.Page = Set(int64(1))
		page, err := s.List(ctx, workspaceID, chatID, params, options...)
		if err != nil {
			yield(nil, err)
			return
		}
		page.All(ctx)(yield)
	}
}
