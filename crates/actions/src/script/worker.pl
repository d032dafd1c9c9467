% Runs one script: a job as JSON on standard input, an answer as JSON on standard output. What the
% script prints goes to standard error. The terms of a script are taken one after the other: a rule
% or a fact is kept, anything else is a goal.
:- module(windlass, [main/0, check/0]).
:- use_module(library(http/json)).
:- use_module(library(sandbox)).
:- use_module(library(lists)).
:- use_module(library(occurs)).
:- use_module(library(strings)).

:- dynamic returned_key/2, returned_value/1, promised/1, loaded/1.

store(Key, Value) :-
    to_json(Value, Json, 0),
    ( atom(Key) -> Name = Key ; term_to_atom(Key, Name) ),
    retractall(returned_key(Name, _)),
    assertz(returned_key(Name, Json)).

store(Value) :-
    to_json(Value, Json, 0),
    retractall(returned_value(_)),
    assertz(returned_value(Json)).

:- multifile sandbox:safe_primitive/1.
sandbox:safe_primitive(windlass:store(_, _)).
sandbox:safe_primitive(windlass:store(_)).

main :-
    current_output(Out),
    set_stream(Out, encoding(utf8)),
    set_stream(user_input, encoding(utf8)),
    set_stream(user_error, encoding(utf8)),
    set_stream(user_error, alias(user_output)),
    set_output(user_error),
    json_read_dict(user_input, Read, []),
    atoms(Read, Job),
    nb_setval(windlass_line, 0),
    ( sub_atom(Job.code, _, _, _, tea_load_code) -> Loads = true ; Loads = false ),
    nb_setval(windlass_loads, Loads),
    catch(( prepare(Job), ignore(run(Job.code)), answer(Answer) ), Error, fault(Error, Answer)),
    json_write_dict(Out, Answer, [width(0)]),
    nl(Out),
    flush_output(Out),
    halt.

% Text is an atom. The option for it has another name in each version of the JSON library.
atoms(Text, Atom) :- string(Text), !, atom_string(Atom, Text).
atoms(Terms, Atoms) :- is_list(Terms), !, maplist(atoms, Terms, Atoms).
atoms(Term, Atoms) :-
    is_dict(Term), !,
    dict_pairs(Term, Tag, Pairs),
    maplist([Key-Part, Key-Atom]>>atoms(Part, Atom), Pairs, New),
    dict_pairs(Atoms, Tag, New).
atoms(Term, Term).

% Whether scripts can be read, before anything runs: a JSON list of them on standard input, a list of
% [line, message] or null on standard output. Only what makes operators is called.
check :-
    set_stream(user_input, encoding(utf8)),
    current_output(Out),
    set_stream(Out, encoding(utf8)),
    json_read_dict(user_input, Read, []),
    atoms(Read, Codes),
    maplist(mistake, Codes, Mistakes),
    json_write_dict(Out, Mistakes, [width(0)]),
    nl(Out),
    flush_output(Out),
    halt.

mistake(Code, Mistake) :-
    catch(( reads(Code), Mistake = null ), Error, true),
    ( var(Error) -> true
    ; Error = error(syntax_error(What), _)
    -> line(Error, Line),
       format(string(Message), "syntax_error: ~w", [What]),
       Mistake = [Line, Message]
    ; Mistake = null
    ).

reads(Code) :-
    nb_setval(windlass_line, 1),
    libraries(Code),
    with_end(Code, Text),
    setup_call_cleanup(open_string(Text, Stream), read_terms(Stream), close(Stream)).

read_terms(Stream) :-
    read_term(Stream, Term, [module(script)]),
    (   Term == end_of_file
    ->  true
    ;   ignore(catch(makes_operators(Term), _, true)),
        read_terms(Stream)
    ).

makes_operators((:- Directive)) :-
    memberchk(Directive, [
        op(_, _, _), use_module(library(_)), use_module(library(_), _), ensure_loaded(library(_))
    ]),
    directive(Directive).
makes_operators(use_module(library(Library))) :- library(Library).

prepare(Job) :-
    assertz((script:return(Key, Value) :- windlass:store(Key, Value))),
    assertz((script:return(Value) :- windlass:store(Value))),
    assertz((script:tea_load_code(Text) :- windlass:load(Text))),
    dynamic(script:state/2),
    forall(get_dict(Key, Job.state, Value), assertz(script:state(Key, Value))),
    libraries(Job.code).

% Constraints are there for whoever seems to use them.
libraries(Code) :-
    (   ( sub_atom(Code, _, _, _, '#') ; sub_atom(Code, _, _, _, 'clpfd') )
    ->  use_module(script:library(clpfd))
    ;   true
    ).

run(Code) :-
    '$set_source_module'(script),
    with_end(Code, Text),
    setup_call_cleanup(open_string(Text, Stream), terms(Stream), close(Stream)).

% The last term may lack its full stop; what follows it may be comments.
with_end(Code, Text) :-
    split_string(Code, "\n", "", Lines),
    reverse(Lines, Backwards),
    without_comments(Backwards, [Last|More]), !,
    normalize_space(atom(Trimmed), Last),
    ( sub_atom(Trimmed, _, 1, 0, '.') -> End = Last ; string_concat(Last, "\n.", End) ),
    reverse([End|More], Forwards),
    atomics_to_string(Forwards, Text).
with_end(_, "").

without_comments([Line|More], Rest) :-
    normalize_space(atom(Trimmed), Line),
    ( Trimmed == '' ; sub_atom(Trimmed, 0, 1, _, '%') ), !,
    without_comments(More, Rest).
without_comments(Lines, Lines).

atomics_to_string(Lines, Text) :-
    atomic_list_concat(Lines, '\n', Atom),
    atom_string(Atom, Text).

terms(Stream) :-
    read_term(Stream, Term, [module(script), term_position(Position)]),
    stream_position_data(line_count, Position, Line),
    nb_setval(windlass_line, Line),
    ( Term == end_of_file -> true ; term(Term), terms(Stream) ).

term((:- Goal)) :- !, directive(Goal).
term((?- Goal)) :- !, goal(Goal).
term(use_module(Library)) :- !, directive(use_module(Library)).
term((Head :- Body)) :- !, keep((Head :- Body), Head).
term((Head --> Body)) :- !, dcg_translate_rule((Head --> Body), Rule), Rule = (New :- _), keep(Rule, New).
term(Term) :- is_fact(Term), !, keep(Term, Term).
term(Goal) :- goal(Goal).

is_fact(Term) :-
    compound(Term),
    functor(Term, Name, Arity),
    \+ memberchk(Name/Arity, [return/1, return/2, state/2, tea_load_code/1]),
    \+ is_given(Term).

% Text as more of the script. Its clauses are looked at when all of them are there, and before
% anything of what is running can call them.
load(Text) :-
    text_to_string(Text, Code),
    nb_getval(windlass_line, Line),
    retractall(loaded(_)),
    with_end(Code, Whole),
    setup_call_cleanup(open_string(Whole, Stream), terms(Stream), close(Stream)),
    nb_setval(windlass_line, Line),
    forall(retract(loaded(Body)), allowed(Body)).

% A clause that is only known when it is added.
add(Where, Term) :-
    ( var(Term) -> throw(error(instantiation_error, _)) ; true ),
    ( Term = (Head :- Body) -> true ; Head = Term, Body = true ),
    may_change(Head),
    allowed(Body),
    ( Where == first -> asserta(script:Term) ; assertz(script:Term) ).

% What is not there yet may come with text that the goal loads.
allowed(Goal) :-
    catch(safe_goal(script:Goal), error(existence_error(procedure, Named), Context), true),
    (   var(Named)
    ->  true
    ;   nb_getval(windlass_loads, true), promise(Named)
    ->  allowed(Goal)
    ;   throw(error(existence_error(procedure, Named), Context))
    ).

promise(_:Named) :- !, promise(Named).
promise(Name/Arity) :- !, functor(Head, Name, Arity), promise(Head).
promise(Head) :-
    functor(Head, Name, Arity),
    functor(General, Name, Arity),
    \+ promised(General),
    dynamic(script:Name/Arity),
    assertz((script:General :- windlass:missing(Name/Arity))),
    assertz(promised(General)).

missing(Named) :- throw(error(existence_error(procedure, Named), _)).

keep_promise(Head) :-
    functor(Head, Name, Arity),
    functor(General, Name, Arity),
    (   retract(promised(General))
    ->  retract((script:General :- windlass:missing(Name/Arity)))
    ;   true
    ).

% Whether somebody else than the script defines it.
is_given(Term) :- predicate_property(system:Term, defined), !.
is_given(Term) :- predicate_property(script:Term, imported_from(_)), !.
is_given(Term) :-
    \+ predicate_property(script:Term, dynamic),
    predicate_property(script:Term, autoload(_)), !.

keep(Clause, Head) :-
    may_change(Head),
    declare(Clause),
    expand_term(Clause, Expanded),
    ( is_list(Expanded) -> Clauses = Expanded ; Clauses = [Expanded] ),
    forall(member(Each, Clauses), keep_clause(Each)).

keep_clause((Head :- Written)) :- !,
    guarded(Written, Body),
    assertz(script:(Head :- Body)),
    assertz(loaded(Body)).
keep_clause(Clause) :- assertz(script:Clause).

may_change(Head) :-
    callable(Head),
    ( predicate_property(system:Head, defined) -> refuse(redefine, Head) ; true ),
    functor(Head, Name, Arity),
    ( is_reserved(Name/Arity) -> refuse(redefine, Head) ; true ),
    keep_promise(Head),
    ( predicate_property(script:Head, dynamic) -> true ; dynamic(script:Name/Arity) ).

% The sandbox refuses to add what it does not see. It is looked at when it is added.
guarded(Part, Part) :- \+ compound(Part), !.
guarded(Part, windlass:add(Where, Term)) :-
    added(Part, Where, Term),
    var(Term), !,
    nb_setval(windlass_loads, true).
guarded(Part, Guarded) :-
    is_control(Part), !,
    Part =.. [Name|Parts],
    maplist(guarded, Parts, All),
    Guarded =.. [Name|All].
guarded(Part, Part).

added(assert(Term), last, Term).
added(assertz(Term), last, Term).
added(asserta(Term), first, Term).

is_control(Part) :-
    functor(Part, Name, Arity),
    memberchk(Name/Arity, [
        (',')/2, (;)/2, (->)/2, (*->)/2, (\+)/1, forall/2, findall/3, once/1, ignore/1, catch/3
    ]).

% What is ours, and what Prolog itself would call where no sandbox looks.
is_reserved(return/_).
is_reserved(tea_load_code/_).
is_reserved((:)/_).
is_reserved(goal_expansion/_).
is_reserved(term_expansion/_).
is_reserved(Name/_) :- sub_atom(Name, 0, 1, _, $).

refuse(Action, Head) :-
    functor(Head, Name, Arity),
    throw(error(permission_error(Action, procedure, Name/Arity), _)).

directive(use_module(library(Library))) :- !, library(Library).
directive(use_module(library(Library), _)) :- !, library(Library).
directive(ensure_loaded(library(Library))) :- !, library(Library).
directive(dynamic(Names)) :- !, dynamic(script:Names).
directive(discontiguous(_)) :- !.
directive(table(Names)) :- !, table(script:Names).
directive(initialization(Goal)) :- !, goal(Goal).
directive(initialization(Goal, _)) :- !, goal(Goal).
directive(set_prolog_flag(double_quotes, Value)) :- !, set_prolog_flag(script:double_quotes, Value).
directive(op(Priority, Type, Names)) :- !, op(Priority, Type, script:Names).
directive(Goal) :- goal(Goal).

library(Library) :-
    memberchk(Library, [
        aggregate, apply, apply_macros, assoc, clpb, clpfd, clpr, clpq, dcg/basics, dcg/high_order,
        dicts, error, gensym, heaps, lambda, lists, nb_set, option, ordsets, pairs, random, rbtrees,
        solution_sequences, strings, tabling, terms, ugraphs, varnumbers, yall
    ]),
    !,
    use_module(script:library(Library)).
library(Library) :-
    throw(error(permission_error(load, library, Library), _)).

% A goal that fails ends the script; what it has given until then stands.
goal(Written) :-
    expand_goal(Written, Expanded),
    declare(Expanded),
    guarded(Expanded, Goal),
    allowed(Goal),
    (   script:Goal
    ->  true
    ;   nb_getval(windlass_line, Line),
        format(user_error, "the goal of line ~w failed~n", [Line]),
        fail
    ).

% What code adds or removes is there before it is called: the sandbox looks at everything first.
declare(Code) :-
    forall(( sub_term(Part, Code), changed(Part, Head) ), declare_head(Head)).

changed(Part, Head) :-
    compound(Part),
    compound_name_arguments(Part, Name, [Clause|_]),
    memberchk(Name, [assert, asserta, assertz, retract, retractall]),
    callable(Clause),
    ( Clause = (Head :- _) -> true ; Head = Clause ),
    callable(Head).

declare_head(Head) :- predicate_property(script:Head, defined), !.
declare_head(_:_) :- !.
declare_head(Head) :- functor(Head, Name, Arity), dynamic(script:Name/Arity).

answer(_{returned: true, result: Json}) :- returned_value(Json), !.
answer(_{returned: true, result: Result}) :-
    findall(Key-Json, returned_key(Key, Json), [First|More]), !,
    dict_pairs(Result, _, [First|More]).
answer(_{returned: false, result: null}).

sandbox:safe_primitive(windlass:load(_)).
sandbox:safe_primitive(windlass:add(_, _)).
sandbox:safe_primitive(windlass:missing(_)).

% Terms as JSON: text is text but for null, true and false, whole floats are integers, and a pair is
% a list.
to_json(Term, _, _) :- var(Term), !, throw(error(instantiation_error, _)).
to_json(_, _, Depth) :- Depth > 96, !, throw(error(resource_error(nesting), _)).
to_json(Term, Term, _) :-
    integer(Term), !,
    ( Term >= -9223372036854775808, Term =< 9223372036854775807
    -> true
    ;  throw(error(type_error(integer_of_64_bits, Term), _))
    ).
to_json(Term, Json, _) :-
    float(Term), !,
    ( Term =:= Term, abs(Term) < inf -> true ; throw(error(type_error(finite_number, Term), _)) ),
    ( Term =:= truncate(Term), abs(Term) < 9.0e15 -> Json is truncate(Term) ; Json = Term ).
to_json(Term, Json, _) :- rational(Term), !, Json is float(Term).
to_json([], [], _) :- !.
to_json(Term, Atom, _) :-
    string(Term), memberchk(Term, ["true", "false", "null"]), !,
    atom_string(Atom, Term).
to_json(Term, Term, _) :- ( string(Term) ; atom(Term) ), !.
to_json(First-Second, Json, Depth) :- !, to_json([First, Second], Json, Depth).
to_json(Term, Json, Depth) :-
    is_list(Term), !,
    Next is Depth + 1,
    findall(Item, ( member(Part, Term), to_json(Part, Item, Next) ), Json).
to_json(Term, Json, Depth) :-
    is_dict(Term), !,
    Next is Depth + 1,
    dict_pairs(Term, _, Pairs),
    findall(Key-Item, ( member(Key-Part, Pairs), to_json(Part, Item, Next) ), Items),
    dict_pairs(Json, _, Items).
to_json(Term, Json, _) :- format(string(Json), "~q", [Term]).

fault(Error, _{fault: _{class: Class, message: Message, line: Line}}) :-
    class(Error, Class),
    line(Error, Line),
    message(Error, Message).

class(error(Formal, _), Class) :- nonvar(Formal), !, functor(Formal, Class, _).
class(Error, Class) :- callable(Error), !, functor(Error, Class, _).
class(_, error).

line(error(syntax_error(_), Where), Line) :-
    nonvar(Where),
    ( Where = stream(_, Line, _, _) ; Where = string(_, _), fail ),
    integer(Line), !.
line(_, Line) :- nb_getval(windlass_line, Line).

message(error(syntax_error(What), _), Message) :- !, format(string(Message), "~w", [What]).
message(error(resource_error(What), _), Message) :- !,
    format(string(Message), "not enough ~w", [What]).
message(error(Raw, _), Message) :-
    copy_term(Raw, Formal),
    numbervars(Formal, 0, _),
    catch(phrase(prolog:translate_message(error(Formal, _)), Lines), _, fail), !,
    with_output_to(string(Text), print_message_lines(current_output, '', Lines)),
    atomic_list_concat(Parts, 'script:', Text),
    atomic_list_concat(Parts, Plain),
    normalize_space(string(Message), Plain).
message(Error, Message) :- format(string(Message), "~p", [Error]).
